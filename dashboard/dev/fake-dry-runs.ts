/** Made-up dry runs, with reports that add up. */
import type { Bin, DryRun, Report, RowResult, Verdict } from "../src/lib/dry-run";
import type { JobEvent } from "../src/lib/types";

const STARTED = Math.floor(Date.now() / 1000);
const ROWS = 32;
const SAMPLES = 8;

let seed = 11;
const chance = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;

const PRODUCTS = ["router", "lamp", "disk", "headset", "printer", "thermostat"];
const TROUBLES = ["reboots every night since the update", "arrived with a broken hinge", "was charged twice on my card", "cannot be paired with my phone"];

const prompt = (row: number): string => `Hello, my ${PRODUCTS[row % 6]} ${TROUBLES[row % 4]}. I have written before and nobody answered. Please help.`;
const reference = (row: number): string => JSON.stringify({ product: PRODUCTS[row % 6], category: ["fault", "damage", "billing", "setup"][row % 4], priority: (row % 3) + 1 });

/** A row that the model solves with the given skill, 0 to 1. */
function graded(row: number, skill: number): RowResult {
  const scores = Array.from({ length: SAMPLES }, () => {
    if (chance() < 0.05) return null;
    return chance() < skill ? 1 : Math.round(skill * chance() * 10) / 10;
  });
  const known = scores.filter((score) => score !== null);
  const failed = scores.length - known.length;
  const solved = known.filter((score) => score >= 1).length;
  return { row: row * 16, prompt: prompt(row), scores, solved, truncated: row % 11 === 3 ? 1 : 0, failed, spread: new Set(known).size > 1 };
}

function bins(scores: readonly number[]): Bin[] {
  const of = (score: number) => Math.min(9, Math.floor(score * 10));
  return Array.from({ length: 10 }, (_, at) => ({ low: at / 10, high: (at + 1) / 10, count: scores.filter((score) => of(score) === at).length }));
}

const share = (part: number, total: number): number => part / total;

/** `skill` of each row; the rest follows from the scores. */
function report(skill: (row: number) => number, verdict: (of: Report["groups"]) => Verdict): Report {
  const rows = Array.from({ length: ROWS }, (_, row) => graded(row, skill(row)));
  const scores = rows.flatMap((row) => row.scores).filter((score) => score !== null);
  const completions = ROWS * SAMPLES;
  const failures = completions - scores.length - 2;
  const [mean, solved] = [scores.reduce((sum, score) => sum + score, 0) / scores.length, share(rows.reduce((sum, row) => sum + row.solved, 0), scores.length)];
  const flat = rows.filter((row) => !row.spread);
  const all = flat.filter((row) => row.solved === SAMPLES - row.failed);
  const groups = {
    total: ROWS, with_spread: ROWS - flat.length, without_spread: flat.length, share_without_spread: share(flat.length, ROWS),
    all_solved: all.length, all_same: flat.length - all.length, too_few: 0,
  };
  const cut = rows.reduce((sum, row) => sum + row.truncated, 0);
  return {
    version: 1, verdict: verdict(groups), rows: ROWS, rows_in_file: 512, samples_per_row: SAMPLES, completions, temperature: 1,
    outcomes: { scores: scores.length, abstentions: 2, failures, stood_in: 4 },
    score: { mean, low: mean - 0.05, high: mean + 0.05 },
    histogram: bins(scores),
    solved: {
      at: 1, never: rows.filter((row) => row.solved === 0).length, always: all.length,
      sometimes: ROWS - all.length - rows.filter((row) => row.solved === 0).length, share: { mean: solved, low: solved - 0.05, high: solved + 0.05 },
    },
    groups,
    truncation: { count: cut, share: share(cut, completions) },
    lengths: { mean: 41.2, p10: 18, p50: 36, p90: 88, longest: 128, limit: 128 },
    ...PROBLEMS,
    by_row: rows,
    estimate: ESTIMATE,
  };
}

const PROBLEMS: Pick<Report, "failures" | "disagreement" | "graders" | "suspicious" | "hints"> = {
  failures: [
    {
      kind: "sample_parse_error", flag: "sample_parse_error", meaning: "the completion is not the JSON that a template reads", blame: "sample",
      grader: "form", count: 9, stood_in: 4, share: 9 / 256,
      examples: [
        { row: 48, text: `Sure! Here is the JSON you asked for:\n{"product": "router"`, detail: "The completion is not pure JSON: expected a value at line 1, column 1." },
        { row: 96, text: `{"product": "lamp", "category": "damage", "priority": }`, detail: "The completion is not pure JSON: expected a value at line 1, column 53." },
      ],
    },
    {
      kind: "formula_runtime", flag: "formula_parse_error", meaning: "`calculate_output` has no finite value, as in 1 / 0", blame: "grader",
      grader: "reward", count: 3, stood_in: 0, share: 3 / 256,
      examples: [{ row: 160, text: `{"product": "", "category": "fault", "priority": 1}`, detail: "Division by zero at column 14 of calculate_output." }],
    },
    {
      kind: "model_grader_server_error", flag: "model_grader_server_error", meaning: "the judge could not be reached", blame: "infrastructure",
      grader: "tone", count: 2, stood_in: 0, share: 2 / 256,
      examples: [{ row: 272, text: reference(17), detail: "judge-small answered 503 three times." }],
    },
  ],
  disagreement: [
    {
      grader: "tone", judged: 240, agreement_mean: 0.81, agreement_p10: 0.33,
      examples: [{ row: 128, text: "It might be a hardware fault, or it might be billing.", detail: "votes 0.2, 0.9, 0.5" }],
    },
  ],
  graders: [
    { grader: "reward", type: "multi", model: null, runs: 256, score_mean: 0.31, latency_s: { mean: 0.42, p50: 0.39, p95: 0.8 }, attempts: 256, cached: 0, tokens: null },
    { grader: "form", type: "json_schema", model: null, runs: 256, score_mean: 0.74, latency_s: { mean: 9e-5, p50: 8e-5, p95: 2e-4 }, attempts: 256, cached: 0, tokens: null },
    { grader: "exact", type: "string_check", model: null, runs: 256, score_mean: 0.2, latency_s: { mean: 2e-5, p50: 2e-5, p95: 5e-5 }, attempts: 256, cached: 0, tokens: null },
    { grader: "tone", type: "score_model", model: "judge-small", runs: 256, score_mean: 0.55, latency_s: { mean: 0.41, p50: 0.38, p95: 0.79 }, attempts: 263, cached: 12, tokens: { prompt: 61_000, completion: 9_000, cached: 12_000 } },
  ],
  suspicious: {
    reference: "item.answer",
    how: "The reference is item.answer, which the grader reads. Similarity is the share of characters in common, in order (0 to 1); shown are the completions that score highest while they are least like it.",
    compared: 243,
    pairs: [
      { row: 80, text: "fault fault fault fault damage damage billing billing setup setup fault fault", reference: reference(5), score: 1, similarity: 0.12, hints: ["repeats itself", "longer than the reference"] },
      { row: 336, text: "The answer is whatever the grader expects.", reference: reference(21), score: 0.9, similarity: 0.18, hints: [] },
    ],
  },
  hints: [
    { hint: "The completion repeats itself.", count: 6, examples: [{ row: 80, text: "fault fault fault fault damage damage", detail: "score 1.00" }] },
    { hint: "The completion names the grader.", count: 1, examples: [{ row: 336, text: "The answer is whatever the grader expects.", detail: "score 0.90" }] },
  ],
};

const ESTIMATE: Report["estimate"] = {
  plan: { steps: 64, prompts_per_step: 8, completions_per_prompt: 8, training_completions: 4_096, evaluation_completions: 1_184 },
  measured: { sampling_completions_per_s: 14.2, sampling_tokens_per_s: 585, update_tokens_per_s: 410, grading_latency_mean_s: 0.42 },
  seconds: { low: 512, high: 1_480 },
  cost: { low: 0.43, high: 1.23, currency: "USD", price_per_hour: 3 },
  judge_tokens: [{ model: "judge-small", low: 1_120_000, high: 1_680_000, prompt_share: 0.87, cost: { low: 0.29, high: 0.44 } }],
  made_of: [
    "Sampling: 5280 completions at the measured 14.2 a second.",
    "Update: one micro-batch was run forward and backward, 410 tokens a second; low counts only groups with spread, high counts all.",
    "High also has completions grow by half, as they often do.",
    "Loading, the warm start and the wait in the queue are not in it.",
  ],
};

const BAD = (of: Report["groups"]): Verdict => ({
  level: "bad",
  message: `${of.without_spread} of ${of.total} groups (${Math.round(of.share_without_spread * 100)} %) have no spread: their completions all score the same, so a job learns nothing from them.`,
  advice: [`${of.all_same} groups never score: start with a warm start, or reward partial progress in the grader.`],
});
const WARN = (of: Report["groups"]): Verdict => ({ ...BAD(of), level: "warn", advice: [...BAD(of).advice, `${of.all_solved} groups always score: leave those rows out or make them harder.`] });
const GOOD = (of: Report["groups"]): Verdict => ({ level: "good", message: `${of.with_spread} of ${of.total} groups have spread: there is something to learn.`, advice: [] });

const newRun = (n: number, status: DryRun["status"], age: number, more: Partial<DryRun> = {}): DryRun => ({
  id: `dryrun-${n}fJkL0aPq9sTn2vWxYzB1cDe`, status, model: "smollm2-135m-instruct", created_at: STARTED - age, finished_at: null,
  method: { type: "reinforcement", reinforcement: { grader: { type: "multi", name: "reward" } } },
  training_file: `file-000${n}kQ2vXh7LmZ9pRwTc4NbY`, validation_file: null, rows: "auto", samples_per_row: "auto", seed: 7, metadata: null,
  error: null, progress: null, report: null, samples_file: null, ...more,
});

const done = (n: number, age: number, found: Report): DryRun =>
  newRun(n, "succeeded", age, {
    finished_at: STARTED - age + 52, rows: ROWS, samples_per_row: SAMPLES, progress: { done: 256, total: 256 }, report: found, samples_file: `file-090${n}samples`,
  });

const UNGRADED = {
  code: "grader_failures", param: null,
  message: "41 of 64 completions could not be graded, more than the limit of 20%; most often (41): sample_parse_error in grader 'form': The completion is not pure JSON.",
};

/** Newest first. */
export function dryRunEvents({ id, created_at, status, error }: DryRun): JobEvent[] {
  const say = (n: number, message: string, more: Partial<JobEvent> = {}): JobEvent => ({
    id: `ftevent-${id}-${n}`, created_at: created_at + n * 3, level: "info", type: "message", message, data: {}, ...more,
  });
  const examples = error?.code === UNGRADED.code ? [{ row: 48, text: "Sure! Here is", outcome: { kind: "sample_parse_error", detail: "The completion is not pure JSON." } }] : [];
  const last = error ? [say(3, error.message ?? "", { level: "error", data: { examples } })] : status === "succeeded" ? [say(17, "The dry run has completed; its report is there")] : [];
  return [...last, ...(status === "queued" ? [] : [say(2, "Dry run started")]), say(1, "Moving dry run to queued state")];
}

export function fakeDryRuns(): DryRun[] {
  const error = { code: "invalid_training_file", param: "training_file", message: "Example 14 has no field 'answer' (did you mean 'anwser'?), which grader 'exact' reads as {{item.answer}}." };
  return [
    newRun(1, "running", 21, { progress: { done: 92, total: 256 } }),
    newRun(2, "queued", 40),
    done(3, 1_900, report((row) => 0.3 + 0.5 * Math.sin(row) ** 2, GOOD)),
    done(4, 9_000, report((row) => (row % 5 === 0 ? 1.2 : row % 3 === 0 ? 0.4 : 0), WARN)),
    done(5, 80_000, report(() => 0, BAD)),
    newRun(6, "failed", 92_000, { finished_at: STARTED - 91_994, error }),
    newRun(8, "failed", 95_000, { finished_at: STARTED - 94_950, progress: { done: 64, total: 256 }, error: UNGRADED }),
    newRun(7, "cancelled", 99_000, { finished_at: STARTED - 98_900, progress: { done: 31, total: 256 } }),
  ];
}
