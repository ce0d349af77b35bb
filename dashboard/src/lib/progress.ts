/** How far a job is and when it will be done. */
import { finite, type Curves } from "./series";
import type { Job } from "./types";

export interface Progress {
  /** What the step counts belong to. */
  phase: "warm start" | "training";
  step: number;
  total: number | null;
  /** 0–1, null while nothing is known. */
  fraction: number | null;
  /** Seconds until the end of the last step (0: past it), null when not running or not known. */
  eta: number | null;
}

/** Progress of `job` at `now` (unix seconds), or null before its first step. */
export function progress(job: Job, rows: Curves, now: number): Progress | null {
  const training = rows.rl.length > 0;
  const last = (training ? rows.rl : rows.warmStart).at(-1);
  if (!last) return null;
  const total = finite(last.data.total_steps);
  const fraction = job.status === "succeeded" ? 1 : total ? Math.min(1, last.step / total) : null;
  const finish = job.status === "running" ? finite(job.estimated_finish) : null;
  const eta = finish === null ? null : Math.max(0, finish - now);
  return { phase: training ? "training" : "warm start", step: last.step, total, fraction, eta };
}
