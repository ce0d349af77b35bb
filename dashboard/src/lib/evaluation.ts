/** The evaluations of a job, and the base model's value that the curves are measured against. */
import { finite } from "./series";
import type { Evaluation, Interval, JobEvent, Stage } from "./types";

const isInterval = (value: Interval): boolean =>
  [value.mean, value.low, value.high].every((part) => part === null || finite(part) !== null);

/** Reads the result file `evaluation.json`, which a finished job has. */
export function parseEvaluation(text: string): Evaluation | "unreadable" {
  try {
    const report = JSON.parse(text) as Evaluation;
    const sound = report.stages.every(
      ({ stage, held_out }) => typeof stage === "string" && isInterval(held_out.reward) && isInterval(held_out.solved),
    );
    return sound ? report : "unreadable";
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return "unreadable";
    throw error;
  }
}

/** The stages that a running job has evaluated so far, from its events. */
export function stagesSoFar(newestFirst: readonly JobEvent[]): Evaluation | null {
  const stages = new Map<string, Stage>();
  for (const { data } of newestFirst.toReversed()) {
    if (typeof data?.stage === "string" && data.held_out) stages.set(data.stage, data as unknown as Stage);
  }
  return stages.size > 0 ? { stages: [...stages.values()] } : null;
}

/** The base model's mean reward on the rows of the validation curve. */
export function baseReward(evaluation: Evaluation | null): number | null {
  const base = evaluation?.stages.find(({ stage }) => stage === "base");
  return finite(base?.selection?.reward.mean) ?? finite(base?.held_out.reward.mean);
}
