import { expect, test } from "vitest";
import { baseReward, parseEvaluation, stagesSoFar } from "../src/lib/evaluation";
import { event } from "./build";

const span = (mean: number | null) => ({ mean, low: mean, high: mean });
const stage = (name: string, reward: number | null, selection?: number) => ({
  stage: name,
  step: 0,
  held_out: { rows: 8, reward: span(reward), solved: span(reward) },
  ...(selection !== undefined && { selection: { reward: span(selection) } }),
});

test("a report is read, also where nothing was held out", () => {
  const report = { stages: [stage("base", 0.1), stage("final", null)] };
  expect(parseEvaluation(JSON.stringify(report))).toEqual(report);
});

test.each(["", "[]", "{}", '{"stages":[{"stage":"base"}]}', JSON.stringify({ stages: [{ ...stage("base", 1), held_out: { reward: {}, solved: {} } }] })])(
  "%s is no report",
  (text) => expect(parseEvaluation(text)).toBe("unreadable"),
);

test("a running job's stages come from its events, oldest first", () => {
  const events = [event("b", stage("warm_start", 0.6), "message"), event("a", stage("base", 0.1), "message"), event("0", {}, "message")];
  expect(stagesSoFar(events)?.stages.map((of) => of.stage)).toEqual(["base", "warm_start"]);
  expect(stagesSoFar([])).toBeNull();
});

test("the base line is on the rows of the validation curve", () => {
  expect(baseReward({ stages: [stage("base", 0.1, 0.2)] })).toBe(0.2);
  expect(baseReward({ stages: [stage("base", 0.1)] })).toBe(0.1);
  expect(baseReward({ stages: [stage("final", 0.9)] })).toBeNull();
});
