/** The API's dry runs and their report, as far as the pages read them; shares are 0 to 1. */
import { record } from "./read";
import { finite } from "./series";
import type { Data, Interval, Job, JobEvent } from "./types";

export interface DryRun {
  id: string;
  status: "validating_files" | "queued" | "running" | "succeeded" | "failed" | "cancelled";
  model: string;
  method: { type: string } & Data;
  created_at: number;
  finished_at: number | null;
  training_file: string;
  validation_file: string | null;
  rows: number | "auto";
  samples_per_row: number | "auto";
  seed: number;
  metadata: Record<string, string> | null;
  error: Job["error"];
  progress: { done: number; total: number } | null;
  report?: Report | null;
  samples_file: string | null;
}

export interface Range {
  low: number;
  high: number;
}

export interface Bin extends Range {
  count: number;
}

export interface Example {
  row: number;
  text: string;
  detail: string;
}

export interface Verdict {
  level: "good" | "warn" | "bad";
  message: string;
  advice: string[];
}

export interface Solved {
  at: number;
  never: number;
  sometimes: number;
  always: number;
  share: Interval;
}

export interface Groups {
  total: number;
  with_spread: number;
  without_spread: number;
  share_without_spread: number;
  all_solved: number;
  all_same: number;
  too_few: number;
}

export interface FailureGroup {
  kind: string;
  flag: string;
  meaning: string;
  blame: string;
  grader: string | null;
  count: number;
  stood_in: number;
  share: number;
  examples: Example[];
}

export interface Disagreement {
  grader: string;
  judged: number;
  agreement_mean: number;
  agreement_p10: number;
  examples: Example[];
}

export interface GraderUse {
  grader: string;
  type: string;
  model: string | null;
  runs: number;
  score_mean: number | null;
  latency_s: { mean: number; p50: number; p95: number };
  attempts: number;
  cached: number;
  tokens: { prompt: number; completion: number; cached: number } | null;
}

export interface SuspiciousPair {
  row: number;
  text: string;
  reference: string | null;
  score: number;
  similarity: number | null;
  hints: string[];
}

export interface RowResult {
  row: number;
  prompt: string;
  scores: (number | null)[];
  solved: number;
  truncated: number;
  failed: number;
  spread: boolean;
}

export interface Estimate {
  plan: {
    steps: number;
    prompts_per_step: number;
    completions_per_prompt: number;
    training_completions: number;
    evaluation_completions: number;
  };
  measured: {
    sampling_completions_per_s: number;
    sampling_tokens_per_s: number;
    update_tokens_per_s: number | null;
    grading_latency_mean_s: number;
  };
  seconds: Range;
  cost: (Range & { currency: string; price_per_hour: number }) | null;
  /** `cost` in US dollars, where the operator gave prices. */
  judge_tokens: (Range & { model: string; prompt_share: number; cost: Range | null })[];
  made_of: string[];
}

export interface Report {
  version: number;
  verdict: Verdict;
  rows: number;
  rows_in_file: number;
  samples_per_row: number;
  completions: number;
  temperature: number;
  outcomes: { scores: number; abstentions: number; failures: number; stood_in: number };
  score: Interval;
  histogram: Bin[];
  solved: Solved;
  groups: Groups;
  truncation: { count: number; share: number };
  lengths: { mean: number; p10: number; p50: number; p90: number; longest: number; limit: number };
  failures: FailureGroup[];
  disagreement: Disagreement[];
  graders: GraderUse[];
  suspicious: { reference: string | null; how: string; compared: number; pairs: SuspiciousPair[] };
  hints: { hint: string; count: number; examples: Example[] }[];
  by_row: RowResult[];
  estimate: Estimate;
}

export const VERSION = 1;

/** What the rows of the table can be narrowed to. */
export const ROW_FILTERS: Record<string, (row: RowResult) => boolean> = {
  All: () => true,
  "With spread": (row) => row.spread,
  "No spread": (row) => !row.spread,
  Failed: (row) => row.failed > 0,
  "Cut off": (row) => row.truncated > 0,
};

/** Where each score lies between the lowest and the highest of the report, 0 to 1. */
export function scale(rows: readonly RowResult[]): (score: number) => number {
  let [low, high] = [Infinity, -Infinity];
  for (const { scores } of rows) {
    for (const score of scores) if (score !== null) [low, high] = [Math.min(low, score), Math.max(high, score)];
  }
  // Where all scores are one, 0 and below is the bottom.
  return (score) => (high > low ? (score - low) / (high - low) : score > 0 ? 1 : 0);
}

export const isOver = ({ status }: DryRun): boolean => ["succeeded", "failed", "cancelled"].includes(status);

/** What a job found when it looked at its first groups, before it trained on any. */
export interface FirstLook {
  level: Verdict["level"];
  message: string;
  groups: Groups;
  completions: number | null;
}

const LEVELS = { info: "good", warn: "warn", error: "bad" } as const;
const GROUP_FIELDS = ["total", "with_spread", "all_solved", "all_same", "too_few"] as const;

/** The newest look, as a resumed job may look again. */
export function firstLook(newestFirst: readonly JobEvent[]): FirstLook | null {
  const groups = ({ data }: JobEvent) => record(data?.groups);
  const event = newestFirst.find((one) => GROUP_FIELDS.every((field) => finite(groups(one)[field]) !== null));
  if (!event) return null;
  const { level, message, data } = event;
  return { level: LEVELS[level], message, groups: groups(event) as unknown as Groups, completions: finite(data?.completions) };
}
