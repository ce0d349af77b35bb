/** Made-up jobs in every state, with metrics in the API's shapes; the running one moves with time. */
import type { Checkpoint, Evaluation, Job, JobEvent, Stage, Status } from "../src/lib/types";

const BASE = "smollm2-135m-instruct";
const STARTED = Math.floor(Date.now() / 1000);
const SECONDS_PER_STEP = 4;

interface FileObject {
  id: string;
  filename: string;
  bytes: number;
}

export interface FakeJob {
  job: Job;
  /** Newest first. */
  events: JobEvent[];
  checkpoints: Checkpoint[];
  files: Map<FileObject, string>;
}

let seed = 7;
/** Noise in −1…1 (a fixed linear congruential sequence, so that screenshots repeat). */
const noise = (): number => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return (seed / 2 ** 31) * 2 - 1;
};

const letters = (prefix: string, n: number): string => prefix + `${n}`.padStart(4, "0") + "kQ2vXh7LmZ9pRwTc4NbY";

const METHOD = {
  type: "reinforcement",
  reinforcement: {
    grader: {
      type: "multi",
      name: "ticket",
      graders: {
        shape: { type: "json_schema", name: "shape", schema: { type: "object", required: ["product", "category", "priority"] } },
        category: { type: "string_check", name: "category", operation: "eq", input: "{{sample.output_json.category}}", reference: "{{item.category}}" },
        priority: { type: "string_check", name: "priority", operation: "eq", input: "{{sample.output_json.priority}}", reference: "{{item.priority}}" },
      },
      calculate_output: "0.2 * shape + 0.5 * category + 0.3 * priority",
    },
    warm_start: { file: "file-warm4kQ2vXh7LmZ9pRw", epochs: 3, learning_rate: 2e-4, batch_size: 16 },
    hyperparameters: {
      algorithm: "grpo", batch_size: 8, group_size: 8, n_epochs: 1, max_steps: 60, learning_rate: 1e-4, kl_coefficient: 0.01,
      temperature: 1, max_completion_tokens: 256, lora_rank: 16, eval_interval: 5, eval_samples: 64,
    },
  },
};

const TYPES = { ticket: "multi", shape: "json_schema", category: "string_check", priority: "score_model" };

const newJob = (n: number, status: Status, age: number, more: Partial<Job> = {}): Job => ({
  id: letters("ftjob-", n), status, model: BASE, method: METHOD, created_at: STARTED - age, finished_at: null,
  fine_tuned_model: null, training_file: letters("file-", n), validation_file: letters("file-", n + 500), result_files: [],
  trained_tokens: null, seed: 42, metadata: { team: "support" }, user_provided_suffix: null, error: null, ...more,
});

class Writer {
  readonly events: JobEvent[] = [];
  constructor(readonly job: Job, public at: number) {}

  say(message: string, data: JobEvent["data"] = {}, level: JobEvent["level"] = "info", type = "message"): void {
    const id = letters(`ftevent-${this.job.id.slice(6, 10)}`, this.events.length);
    this.events.unshift({ id, created_at: Math.floor(this.at), level, type, message, data });
  }

  begin(): void {
    this.say(`Created fine-tuning job: ${this.job.id}`);
    this.say(`Validating training file: ${this.job.training_file} and validation file: ${this.job.validation_file}`);
    this.say("Files validated, moving job to queued state");
    this.at += 9;
    this.say("Fine-tuning job started", null);
  }

  warmStart(steps: number): void {
    for (let step = 1; step <= steps; step++) {
      this.at += 2.2;
      const train_loss = 0.25 + 1.9 * Math.exp(-step / 5) + 0.05 * noise();
      const reward = step % 6 === 0 ? { full_valid_mean_reward: 0.31 + 0.4 * (1 - Math.exp(-step / 8)) } : {};
      this.say(`Step ${step}/${steps}: training loss=${train_loss.toFixed(2)}`, { phase: "warm_start", step, total_steps: steps, train_loss, ...reward }, "info", "metrics");
    }
  }

  firstLook(poor: boolean): void {
    const groups = poor
      ? { total: 8, with_spread: 3, without_spread: 5, share_without_spread: 0.625, all_solved: 1, all_same: 3, too_few: 1 }
      : { total: 8, with_spread: 6, without_spread: 2, share_without_spread: 0.25, all_solved: 2, all_same: 0, too_few: 0 };
    const message = poor
      ? "5 of 8 groups (62%) have no spread of scores, so training learns nothing from them. 3 groups score the same below full marks every time: add a warm_start, reward partial progress in the grader, or use easier rows."
      : "6 of 8 groups (75%) have a spread of scores to learn from.";
    this.say(message, { groups, completions: 64 }, poor ? "warn" : "info");
  }

  evaluation(stage: Stage): void {
    this.at += 6;
    const { stage: name, held_out: held } = stage;
    this.say(`Evaluation of the ${name.replace("_", " ")} on ${held.rows} held-out rows: reward=${held.reward.mean!.toFixed(2)}`, { ...stage });
  }

  rl(step: number, total: number): void {
    const learnt = 1 - Math.exp(-step / 22);
    const valid = step % 5 === 0 ? 0.71 + 0.23 * learnt + 0.012 * noise() : null;
    const data = {
      phase: "rl", step, total_steps: total, train_mean_reward: step % 29 === 17 ? null : 0.68 + 0.25 * learnt + 0.045 * noise(),
      full_valid_mean_reward: valid, completion_tokens_mean: 34 - 6 * learnt + 1.2 * noise(),
      kl_to_reference: 0.002 + 0.05 * learnt + 0.002 * noise(), mismatch_mean: 0.011 + 0.003 * noise(), entropy: 0.4 - 0.25 * learnt + 0.02 * noise(),
      ...this.outcomes(step, learnt), truncated_share: Math.max(0, 0.05 - 0.05 * learnt + 0.01 * noise()),
      scores: { graders: Object.entries(TYPES).map(([name, type], i) => ({ name, type, valid_reward_mean: valid && Math.min(1, valid + 0.09 - 0.07 * i + 0.01 * noise()) })) },
    };
    const full = valid === null ? "" : `, full validation mean reward=${valid.toFixed(2)}`;
    this.say(`Step ${step}/${total} , train mean reward=${(data.train_mean_reward ?? NaN).toFixed(2)}${full}`, data, "info", "metrics");
    if (valid !== null) this.say(`Checkpoint created at step ${step}`);
  }

  /** What graders report; the step that no grader answered in is a gap. */
  private outcomes(step: number, learnt: number) {
    const parse = Math.round(7 * (1 - learnt) + noise());
    const away = step % 9 === 4 ? 2 : 0;
    const lost = Math.max(0, parse) + away;
    const abstentions = step % 7 === 3 ? 1 : 0;
    const grader = (mean: number, latency_mean_s: number, failures: Record<string, number> = {}, tokens: number | null = null) => ({
      mean: step % 29 === 17 ? null : Math.min(1, mean + 0.02 * noise()), latency_mean_s: latency_mean_s * (1 + 0.2 * noise()), failures, abstained: 0, tokens,
    });
    const graders = {
      ticket: grader(0.6 + 0.3 * learnt, 0.31),
      shape: grader(0.8 + 0.18 * learnt, 9e-5),
      category: grader(0.55 + 0.35 * learnt, 2e-5, { sample_parse_error: Math.max(0, parse) }),
      priority: grader(0.5 + 0.3 * learnt, 0.29, { model_grader_server_error: away }, 21_400 + Math.round(900 * noise())),
    };
    return { failures: lost, abstentions, mean_unresponsive_rewards: (lost + abstentions) / 64, graders };
  }
}

const span = (mean: number, half: number) => ({ mean, low: Math.max(0, mean - half), high: Math.min(1, mean + half) });
const stage = (name: string, step: number, reward: number, solved: number) => ({
  stage: name, step, held_out: { rows: 192, reward: span(reward, 0.034), solved: span(solved, 0.062) }, selection: { reward: span(reward + 0.01, 0.05) },
});
const STAGES = [stage("base", 0, 0.312, 0.021), stage("warm_start", 24, 0.748, 0.604), stage("final", 60, 0.921, 0.839)];
const GAINS = [{ from: "base", to: "warm_start", solved: span(0.583, 0.07) }, { from: "warm_start", to: "final", solved: span(0.235, 0.06) }];

function trained(job: Job, steps: number, total: number): FakeJob {
  const writer = new Writer(job, job.created_at);
  writer.begin();
  writer.evaluation(STAGES[0]!);
  writer.warmStart(24);
  writer.evaluation(STAGES[1]!);
  if (steps > 0) writer.firstLook(job.status === "paused");
  for (let step = 1; step <= steps; step++) {
    writer.at += SECONDS_PER_STEP;
    writer.rl(step, total);
  }
  const files = new Map<FileObject, string>();
  if (job.status === "succeeded") {
    writer.evaluation(STAGES[2]!);
    const report: Evaluation = { stages: STAGES, gains: GAINS };
    addFile(job, files, "step_metrics.csv", "step,train_mean_reward\n1,0.71\n");
    addFile(job, files, "evaluation.json", JSON.stringify(report));
  }
  return { job, events: writer.events, checkpoints: [], files };
}

function addFile(job: Job, files: FakeJob["files"], filename: string, text: string): void {
  const file = { id: letters("file-", 900 + job.created_at % 1000 + files.size), filename, bytes: text.length };
  files.set(file, text);
  job.result_files.push(file.id);
}

/** Checkpoints as the service keeps them: the best three, by the validation reward in the events. */
export function checkpoints({ job, events }: FakeJob): Checkpoint[] {
  const name = `ft:${BASE}:org-rft:${job.user_provided_suffix ?? ""}`;
  return events
    .filter((event) => event.data?.phase === "rl" && event.data.full_valid_mean_reward != null)
    .slice(0, 3)
    .map((event, i) => {
      const step = event.data!.step as number;
      const final = job.status === "succeeded" && i === 0;
      const model = final ? job.fine_tuned_model! : `${name}:${(step * 7919).toString(36).padStart(8, "k")}:ckpt-step-${step}`;
      return { id: letters("ftckpt_", step), created_at: event.created_at, fine_tuned_model_checkpoint: model, step_number: step, metrics: event.data! };
    });
}

const told = (job: Job, ...messages: [string, JobEvent["level"]?][]): FakeJob => {
  const writer = new Writer(job, job.created_at);
  for (const [message, level] of messages) writer.say(message, {}, level);
  return { job, events: writer.events, checkpoints: [], files: new Map() };
};

function finished(n: number, suffix: string, age: number): FakeJob {
  const model = `ft:${BASE}:org-rft:${suffix}:a8Kd02xQ`;
  const job = newJob(n, "succeeded", age, { user_provided_suffix: suffix, fine_tuned_model: model, finished_at: STARTED - age + 421, trained_tokens: 118_304 });
  const fake = trained(job, 60, 60);
  fake.events.unshift({ id: letters("ftevent-done", n), created_at: job.finished_at!, level: "info", type: "message", message: "The job has successfully completed", data: {} });
  return fake;
}

export function fakeJobs(): FakeJob[] {
  const running = trained(newJob(1, "running", 210, { user_provided_suffix: "support-triage-v4" }), 33, 90);
  const live = new Writer(running.job, STARTED);
  live.events.push(...running.events);
  (running as { events: JobEvent[] }).events = live.events;
  let step = 33;
  setInterval(() => {
    if (running.job.status === "pausing") running.job.status = "paused";
    if (running.job.status !== "running" || step >= 90) return;
    live.at = Date.now() / 1000;
    live.rl(++step, 90);
    running.job.estimated_finish = Math.floor(live.at) + (90 - step) * SECONDS_PER_STEP;
  }, SECONDS_PER_STEP * 1000);

  const paused = trained(newJob(4, "paused", 7_900, { user_provided_suffix: "invoice-fields" }), 12, 40);
  paused.events.unshift({ id: "ftevent-pause", created_at: STARTED - 7_400, level: "error", type: "message",
    data: { examples: [{ row: 41, text: "Sure! Here is the JSON you asked for:\n{", outcome: { outcome: "failure", kind: "sample_parse_error", detail: "The completion is not pure JSON: expected a value at line 1, column 1." } }] },
    message: "21 of 64 completions could not be graded, more than the limit of 20%; most often (21): sample_parse_error in grader 'category'. Fix the data or the grader and resume." });
  const error = { code: "invalid_training_file", message: "Example 14 has no field 'category' (did you mean 'categorie'?), which grader 'category' reads as {{item.category}}.", param: "training_file" };
  return [
    told(newJob(3, "validating_files", 6), ["Created fine-tuning job"]),
    running,
    told(newJob(2, "queued", 95, { user_provided_suffix: "routing-small" }), ["Created fine-tuning job"], ["Files validated, moving job to queued state"]),
    paused,
    finished(5, "support-triage-v3", 90_000),
    told(newJob(6, "failed", 93_000, { finished_at: STARTED - 92_990, error }), ["Created fine-tuning job"], [error.message, "error"]),
    finished(7, "support-triage-v2", 182_000),
    told(newJob(8, "cancelled", 260_000, { user_provided_suffix: "try-out" }), ["Created fine-tuning job"], ["Job cancelled"]),
  ];
}
