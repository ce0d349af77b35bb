/** Everything the job page shows, fetched again only where it can have changed. */
import { ApiError, type Api } from "./api";
import { parseEvaluation } from "./evaluation";
import { EventLog } from "./events";
import type { Checkpoint, Evaluation, Job, JobEvent } from "./types";

export interface JobView {
  job: Job;
  events: JobEvent[];
  checkpoints: Checkpoint[];
  evaluation: Evaluation | "unreadable" | null;
}

export class JobFeed {
  private readonly log = new EventLog();
  private seen = { event: "", files: "" };
  private checkpoints: Checkpoint[] = [];
  private evaluation: JobView["evaluation"] = null;

  constructor(
    private readonly api: Api,
    private readonly id: string,
  ) {}

  /** The job first: when it is finished, what is read after it is final. */
  async load(signal: AbortSignal): Promise<JobView> {
    const job = await this.api.job(this.id, signal);
    const events = await this.log.refresh((after, limit) => this.api.events(this.id, after, limit, signal));
    const event = events[0]?.id ?? "";
    if (event !== this.seen.event) this.checkpoints = (await this.api.checkpoints(this.id, signal)).data;
    const files = job.result_files.join();
    if (files !== this.seen.files) this.evaluation = await this.readEvaluation(job, signal);
    this.seen = { event, files };
    return { job, events, checkpoints: this.checkpoints, evaluation: this.evaluation };
  }

  private async readEvaluation(job: Job, signal: AbortSignal): Promise<JobView["evaluation"]> {
    for (const id of job.result_files) {
      try {
        const { filename } = await this.api.file(id, signal);
        if (filename === "evaluation.json") return parseEvaluation(await this.api.content(id, signal));
      } catch (error) {
        // The user may delete a result file while the job still lists it.
        if (!(error instanceof ApiError && error.status === 404)) throw error;
      }
    }
    return null;
  }
}
