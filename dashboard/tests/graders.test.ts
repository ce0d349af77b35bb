import { expect, test } from "vitest";
import { completionsPerStep, failureExamples, failureHistories, graderStep, histories, outcomes, shownExamples } from "../src/lib/graders";
import type { Data } from "../src/lib/types";
import { event } from "./build";

const rows = (...steps: Data[]) => steps.map((data, at) => ({ step: at + 1, data }));
const graded = (...steps: Data[]) => rows(...steps).map(graderStep);

/** What a step says whose server has no `graders` object. */
const old = (mean: unknown, parseErrors: number): Data => ({
  grader_latency_mean_s: 0.2,
  scores: { graders: [{ name: "whole", type: "multi", train_reward_mean: mean }, { name: "part", type: "string_check", train_reward_mean: 0.5 }] },
  errors: {
    graders: [
      { name: "whole", type: "multi", train_sample_parse_error_count: 0, train_sample_parse_error_mean: 0, valid_sample_parse_error_count: 9 },
      { name: "part", type: "string_check", train_sample_parse_error_count: parseErrors, train_other_error_count: 1 },
    ],
  },
});
const own = (failures: Data, more: Data = {}): Data => ({
  scores: { graders: [{ name: "judge", type: "score_model" }] },
  graders: { judge: { mean: 0.4, latency_mean_s: 1.5, failures, abstained: 1, tokens: 900, ...more } },
});

test("outcomes are counted apart, and a step that does not say is a gap", () => {
  const steps = rows({ failures: 3, abstentions: 1, mean_unresponsive_rewards: 0.5 }, {}, { failures: 0, abstentions: "NaN" }, { failures: 0, abstentions: 0 });
  expect(outcomes(steps, 8)).toEqual({ scored: [4, null, null, 8], abstained: [1, null, null, 0], failed: [3, null, null, 0] });
});

test("outcomes are shares where the size of a step is not known", () => {
  const steps = rows({ failures: 3, abstentions: 1, mean_unresponsive_rewards: 0.5 }, { failures: 0, abstentions: 0, mean_unresponsive_rewards: 0 }, { failures: 1, abstentions: 0 });
  expect(outcomes(steps, null)).toEqual({ scored: [0.5, 1, null], abstained: [0.125, 0, null], failed: [0.375, 0, null] });
});

test("a step's size needs settled hyperparameters", () => {
  expect(completionsPerStep({ batch_size: 8, group_size: 4 })).toBe(32);
  expect([completionsPerStep({ batch_size: "auto", group_size: 4 }), completionsPerStep(undefined)]).toEqual([null, null]);
});

test("each grader has a course with gaps, and sums", () => {
  const steps = graded(own({ model_grader_parse_error: 2 }), {}, own({}, { mean: null, latency_mean_s: "NaN", tokens: null }));
  expect(histories(steps)).toEqual([
    { name: "judge", type: "score_model", mean: [0.4, null, null], latency: [1.5, null, null], failures: 2, abstained: 2, tokens: 900 },
  ]);
});

test("OpenAI's fields stand in for an absent graders object", () => {
  const [whole, part] = histories(graded(old(0.6, 2), old(NaN, 0)));
  expect(whole).toMatchObject({ name: "whole", mean: [0.6, null], latency: [0.2, 0.2], failures: 0, abstained: null, tokens: null });
  expect(part).toMatchObject({ name: "part", mean: [0.5, 0.5], latency: [null, null], failures: 4 });
});

test("failures by kind: most frequent first, none is zero and not told is a gap", () => {
  const steps = graded(old(0.6, 2), {}, own({ model_grader_refusal_error: 7 }), own({}));
  expect(failureHistories(steps)).toEqual([
    { kind: "model_grader_refusal_error", graders: ["judge"], total: 7, cells: [0, null, 7, 0] },
    { kind: "sample_parse_error", graders: ["part"], total: 2, cells: [2, null, 0, 0] },
    { kind: "other_error", graders: ["part"], total: 1, cells: [1, null, 0, 0] },
  ]);
});

test("a multi repeats what failed in a part of it: that is one failure, and its own stay its own", () => {
  const of = (failures: Data) => ({ failures, mean: null });
  const steps = graded({
    graders: { whole: of({ sample_parse_error: 3, formula_runtime: 1 }), a: of({ sample_parse_error: 3 }), b: of({ sample_parse_error: 2 }) },
  });
  expect(failureHistories(steps)).toEqual([
    { kind: "sample_parse_error", graders: ["a", "b"], total: 5, cells: [5] },
    { kind: "formula_runtime", graders: ["whole"], total: 1, cells: [1] },
  ]);
  expect(histories(steps).map(({ failures }) => failures)).toEqual([4, 3, 2]);
});

test("a part with the name of the whole is told apart", () => {
  const steps = graded({
    scores: { graders: [{ name: "g", type: "multi", train_reward_mean: 0.2 }, { name: "g", type: "number", train_reward_mean: 0.9 }] },
    graders: { g: { latency_mean_s: 1 }, "g.g": { latency_mean_s: 2 } },
  });
  expect(histories(steps).map(({ name, type, mean, latency }) => [name, type, mean, latency])).toEqual([
    ["g", "multi", [0.2], [1]],
    ["g.g", "number", [0.9], [2]],
  ]);
});

test.each([{ graders: null }, { graders: [1] }, { graders: { a: 3 } }, { scores: 1, errors: { graders: [null, {}] } }, { graders: { a: { failures: "many" } } }])(
  "%j is borne",
  (data) => expect(failureHistories(graded(data))).toEqual([]),
);

test("examples are the newest sentence of each kind", () => {
  const example = (kind: string, detail: string) => ({ row: 1, text: "x", outcome: { outcome: "failure", kind, detail } });
  const events = [event("b", { examples: [example("a_error", "new"), example("a_error", "second")] }), event("a", { examples: [example("a_error", "old"), example("b_error", "b"), 7] }), event("0")];
  expect([...failureExamples(events)]).toEqual([["a_error", "new"], ["b_error", "b"]]);
});

test("shown completions say why they were not graded, or their score", () => {
  const examples = [{ row: 3, text: "a", outcome: { kind: "x_error", detail: "No." } }, { row: 4, text: "b", score: 0 }, { row: 5, text: "c", score: null }, { text: 1 }, null];
  const error = (id: string, data: Data) => ({ ...event(id, data, "message"), level: "error" as const });
  const events = [error("other", { examples: [examples[0]!] }), event("why", { examples: [] }), error("why", { examples }), error("bad", { examples: "none" })];
  expect(shownExamples(events, "why").map(({ detail }) => detail)).toEqual(["x_error: No.", "score 0.000", "score –"]);
  expect([shownExamples(events, "bad"), shownExamples(events, "nobody said this")]).toEqual([[], []]);
});
