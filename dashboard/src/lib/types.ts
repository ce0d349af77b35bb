/** The parts of the API's objects that the pages read. Times are unix seconds. */

export type Status = "validating_files" | "queued" | "running" | "pausing" | "paused" | "succeeded" | "failed" | "cancelled";
export type Data = Record<string, unknown>;

export interface Job {
  id: string;
  status: Status;
  model: string;
  method?: ({ type: string } & Data) | null;
  created_at: number;
  finished_at: number | null;
  estimated_finish?: number | null;
  fine_tuned_model: string | null;
  training_file: string;
  validation_file: string | null;
  result_files: string[];
  trained_tokens: number | null;
  seed: number;
  metadata?: Record<string, string> | null;
  user_provided_suffix?: string | null;
  error: { code: string | null; message: string | null; param: string | null } | null;
}

export interface JobEvent {
  id: string;
  created_at: number;
  level: "info" | "warn" | "error";
  type: string;
  message: string;
  data?: Data | null;
}

export interface Checkpoint {
  id: string;
  created_at: number;
  fine_tuned_model_checkpoint: string;
  step_number: number;
  metrics: Data;
}

export interface Page<T> {
  data: T[];
  has_more: boolean;
}

/** A mean with its 95 % interval; all null when there was nothing to average. */
export interface Interval {
  mean: number | null;
  low: number | null;
  high: number | null;
}

export interface Stage {
  stage: string;
  step: number;
  held_out: { rows: number; reward: Interval; solved: Interval };
  /** The rows that choose the best checkpoint: those of the validation curve. */
  selection?: { reward: Interval };
}

/** What was measured in each stage; a gain is the row-wise difference between two of them. */
export interface Evaluation {
  stages: Stage[];
  gains?: { from: string; to: string; solved: Interval }[];
}

export const isFinished = ({ status }: Job): boolean => ["succeeded", "failed", "cancelled"].includes(status);

/** A job goes by its suffix when it has one. */
export const title = (job: Job): string => job.user_provided_suffix ?? job.id;

/** What a method was given: grader, hyperparameters, warm start. */
export const settings = ({ method }: Pick<Job, "method">): Data => (method?.[method.type] ?? {}) as Data;
