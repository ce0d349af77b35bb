import type { Data, Job, JobEvent } from "../src/lib/types";

export const event = (id: string, data: Data | null = null, type = "metrics"): JobEvent => ({
  id, created_at: 0, level: "info", type, message: id, data,
});

export const job = (more: Partial<Job> = {}): Job => ({
  id: "ftjob-1", status: "running", model: "base", created_at: 0, finished_at: null, fine_tuned_model: null,
  training_file: "file-1", validation_file: null, result_files: [], trained_tokens: null, seed: 1, error: null, ...more,
});
