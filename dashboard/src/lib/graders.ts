/** What the graders made of each step: outcomes kept apart, failures by kind, one history a grader. */
import type { Example } from "./dry-run";
import { number } from "./format";
import { list, record } from "./read";
import { finite, type Cell, type Row } from "./series";
import type { Data, JobEvent } from "./types";

/** How the completions of each step ended: counted, or as shares where a step's size is not known. */
export interface Outcomes {
  scored: Cell[];
  abstained: Cell[];
  failed: Cell[];
}

/** `perStep`: the completions of one step. A step that does not say how it ended is a gap. */
export function outcomes(rows: readonly Row[], perStep: number | null): Outcomes {
  const split = rows.map(({ data }) => {
    const [failed, abstained, lost] = [data.failures, data.abstentions, data.mean_unresponsive_rewards].map(finite);
    if (failed == null || abstained == null) return null;
    if (perStep !== null) return { scored: Math.max(0, perStep - failed - abstained), abstained, failed };
    if (lost == null) return null;
    const each = failed + abstained > 0 ? lost / (failed + abstained) : 0;
    return { scored: 1 - lost, abstained: abstained * each, failed: failed * each };
  });
  const column = (name: keyof Outcomes): Cell[] => split.map((step) => step?.[name] ?? null);
  return { scored: column("scored"), abstained: column("abstained"), failed: column("failed") };
}

/** The completions of one step of a job whose hyperparameters are settled. */
export function completionsPerStep(hyperparameters: unknown): number | null {
  const { batch_size, group_size } = record(hyperparameters);
  const size = (finite(batch_size) ?? 0) * (finite(group_size) ?? 0);
  return size > 0 ? size : null;
}

export interface GraderHistory {
  name: string;
  type: string;
  /** Mean score of each step's training completions. */
  mean: Cell[];
  latency: Cell[];
  /** Sums over the steps; null when no step says. */
  failures: number | null;
  abstained: number | null;
  tokens: number | null;
}

/** One history a grader, the whole grader first. */
export function histories(steps: readonly GraderStep[]): GraderHistory[] {
  const types = new Map(steps.flatMap((step) => [...step].map(([name, { type }]) => [name, type] as const)));
  return [...types].map(([name, type]) => {
    const own = steps.map((step) => step.get(name));
    const column = (key: "mean" | "latency" | "tokens" | "abstained") => own.map((step) => step?.[key] ?? null);
    return {
      name,
      type,
      mean: column("mean"),
      latency: column("latency"),
      failures: total(own.map((step) => step?.failures && count(step.failures))),
      abstained: total(column("abstained")),
      tokens: total(column("tokens")),
    };
  });
}

export interface FailureHistory {
  kind: string;
  graders: string[];
  total: number;
  cells: Cell[];
}

/** Failures of the training completions by kind, the most frequent first. */
export function failureHistories(steps: readonly GraderStep[]): FailureHistory[] {
  const kinds = new Map<string, FailureHistory>();
  steps.forEach((step, at) => {
    for (const { grader, kind, count: n } of ownFailures(step)) {
      const known = kinds.get(kind) ?? { kind, graders: [], total: 0, cells: steps.map(told) };
      kinds.set(kind, known);
      if (!known.graders.includes(grader)) known.graders.push(grader);
      known.total += n;
      known.cells[at] = (known.cells[at] ?? 0) + n;
    }
  });
  return [...kinds.values()].sort((a, b) => b.total - a.total);
}

/** Each grader's failures; a `multi` fails where a part of it does, which is the part's failure alone. */
function ownFailures(step: GraderStep): { grader: string; kind: string; count: number }[] {
  const [whole, ...parts] = [...step].map(([grader, { failures }]) => ({ grader, failures: failures ?? new Map<string, number>() }));
  const ofParts = (kind: string) => parts.reduce((sum, { failures }) => sum + (failures.get(kind) ?? 0), 0);
  return [...parts, ...(whole ? [whole] : [])].flatMap((of) =>
    [...of.failures]
      .map(([kind, n]) => ({ grader: of.grader, kind, count: of === whole ? n - ofParts(kind) : n }))
      .filter(({ count: n }) => n > 0),
  );
}

/** A step that counts failures at all had none of a kind that it does not name. */
const told = (step: GraderStep): Cell => ([...step.values()].some(({ failures }) => failures) ? 0 : null);

/** One failed completion in the grader's words, for each kind that an event shows examples of. */
export function failureExamples(newestFirst: readonly JobEvent[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const { outcome } of newestFirst.flatMap(({ data }) => list(data?.examples)).map(record)) {
    const { kind, detail } = record(outcome);
    if (typeof kind === "string" && typeof detail === "string" && !found.has(kind)) found.set(kind, detail);
  }
  return found;
}

/** The completions that the error with this message shows, to read; none where it shows none. */
export const shownExamples = (events: readonly JobEvent[], message: string): Example[] =>
  list(events.find((event) => event.level === "error" && event.message === message)?.data?.examples)
    .map(record)
    .flatMap(({ row, text, outcome, score }) => {
      if (typeof row !== "number" || typeof text !== "string") return [];
      const { kind, detail } = record(outcome);
      return [{ row, text, detail: typeof kind === "string" ? `${kind}: ${String(detail)}` : `score ${number(finite(score))}` }];
    });

interface Graded {
  type: string;
  mean: number | null;
  latency: number | null;
  tokens: number | null;
  abstained: number | null;
  failures: Map<string, number> | null;
}

/** Every grader of one step by name. */
export type GraderStep = ReadonlyMap<string, Graded>;

/** Reads one step's metrics; OpenAI's fields stand in for what `graders` does not say. */
export function graderStep({ data }: Row): GraderStep {
  const own = record(data.graders);
  const scores = named(record(data.scores).graders);
  const errors = named(record(data.errors).graders);
  const whole = [...scores.keys()][0];
  const step = new Map<string, Graded>();
  for (const name of new Set([...scores.keys(), ...Object.keys(own), ...errors.keys()])) {
    const said = Object.hasOwn(own, name) ? record(own[name]) : {};
    const [score, error] = [scores.get(name), errors.get(name)];
    const failures = said.failures ?? (error && counted(error));
    step.set(name, {
      type: String(score?.type ?? error?.type ?? ""),
      mean: finite(said.mean) ?? finite(score?.train_reward_mean),
      latency: finite(said.latency_mean_s) ?? (name === whole ? finite(data.grader_latency_mean_s) : null),
      tokens: finite(said.tokens),
      abstained: finite(said.abstained),
      failures: failures ? numbers(record(failures)) : null,
    });
  }
  return step;
}

/** The counts of OpenAI's error rows: `train_<flag>_count`. */
function counted(row: Data): Data {
  const pairs = Object.entries(row).flatMap(([key, value]) => {
    const flag = /^train_(.+)_count$/.exec(key)?.[1];
    return flag ? [[flag, value] as const] : [];
  });
  return Object.fromEntries(pairs);
}

/** A part with the name of the whole goes by "name.name", as it does in `graders`. */
function named(rows: unknown): Map<string, Data> {
  const found = new Map<string, Data>();
  for (const row of list(rows).map(record)) {
    if (typeof row.name === "string") found.set(found.has(row.name) ? `${row.name}.${row.name}` : row.name, row);
  }
  return found;
}

const numbers = (values: Data): Map<string, number> =>
  new Map(Object.entries(values).flatMap(([name, value]) => (finite(value) === null ? [] : [[name, value as number]])));

const count = (failures: Map<string, number>): number => [...failures.values()].reduce((sum, n) => sum + n, 0);

function total(cells: readonly Cell[]): number | null {
  const known = cells.filter((cell) => typeof cell === "number");
  return known.length === 0 ? null : known.reduce((sum, n) => sum + n, 0);
}
