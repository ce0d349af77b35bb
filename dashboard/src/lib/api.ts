/** The HTTP client: one sentence for every way a request can go wrong. */
import type { DryRun } from "./dry-run";
import type { Checkpoint, Job, JobEvent, Page } from "./types";

const TIMEOUT_MS = 15_000;

/** `key`: sign in again. `refused`: asking again will not help. `away`: try again later. */
export type ErrorKind = "key" | "refused" | "away";

export class ApiError extends Error {
  constructor(readonly kind: ErrorKind, message: string, readonly status?: number) {
    super(message);
  }
}

export type Action = "pause" | "resume" | "cancel";
type Signal = AbortSignal | undefined;

export class Api {
  /** `onKeyRefused` is called for each answer that says the key is not valid. */
  constructor(
    private readonly key: string,
    private readonly onKeyRefused: (message: string) => void = () => {},
  ) {}

  jobs = (limit: number, signal?: Signal) => this.json<Page<Job>>(`fine_tuning/jobs?limit=${limit}`, signal);

  job = (id: string, signal: Signal) => this.json<Job>(jobPath(id), signal);

  events(id: string, after: string | null, limit: number, signal: Signal): Promise<Page<JobEvent>> {
    const query = new URLSearchParams({ limit: String(limit), ...(after && { after }) });
    return this.json(`${jobPath(id)}/events?${query}`, signal);
  }

  checkpoints = (id: string, signal: Signal) => this.json<Page<Checkpoint>>(`${jobPath(id)}/checkpoints?limit=100`, signal);

  act = (id: string, action: Action) => this.json<Job>(`${jobPath(id)}/${action}`, undefined, "POST");

  dryRuns = (limit: number, signal: Signal) => this.json<Page<DryRun>>(`fine_tuning/dry_runs?limit=${limit}`, signal);

  dryRun = (id: string, signal: Signal) => this.json<DryRun>(dryRunPath(id), signal);

  dryRunEvents = (id: string, signal: Signal) => this.json<Page<JobEvent>>(`${dryRunPath(id)}/events?limit=100`, signal);

  cancelDryRun = (id: string) => this.json<DryRun>(`${dryRunPath(id)}/cancel`, undefined, "POST");

  file = (id: string, signal: Signal) => this.json<{ filename: string }>(`files/${id}`, signal);

  content = async (id: string, signal: Signal) => (await this.request(`files/${id}/content`, signal)).text();

  private async json<T>(path: string, signal: Signal, verb = "GET"): Promise<T> {
    const response = await this.request(path, signal, verb);
    try {
      return (await response.json()) as T;
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError("away", "The server's answer is not JSON; is this address the rft API?");
    }
  }

  private async request(path: string, signal: Signal, verb = "GET"): Promise<Response> {
    const limit = AbortSignal.timeout(TIMEOUT_MS);
    let response: Response;
    try {
      response = await fetch(`/v1/${path}`, {
        method: verb,
        headers: { Authorization: `Bearer ${this.key}` },
        cache: "no-store",
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      const late = `The server did not answer within ${TIMEOUT_MS / 1000} s.`;
      throw new ApiError("away", limit.aborted ? late : "The server cannot be reached.");
    }
    if (response.ok) return response;
    const failure = await refusal(response);
    if (failure.kind === "key") this.onKeyRefused(failure.message);
    throw failure;
  }
}

const jobPath = (id: string): string => `fine_tuning/jobs/${encodeURIComponent(id)}`;
const dryRunPath = (id: string): string => `fine_tuning/dry_runs/${encodeURIComponent(id)}`;

/** Reads OpenAI's error envelope; a body without one (a proxy's page) is named by its status. */
async function refusal(response: Response): Promise<ApiError> {
  const { status } = response;
  const body: unknown = await response.json().catch(() => null);
  const said = (body as { error?: { message?: unknown } } | null)?.error?.message;
  const kind = status === 401 ? "key" : status >= 500 || status === 429 || status === 408 ? "away" : "refused";
  return new ApiError(kind, typeof said === "string" ? said : `The server answered ${status} and gave no reason.`, status);
}
