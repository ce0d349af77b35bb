/** A small stand-in for the API, for work on the pages: `npm run demo`, any key but "wrong". */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin } from "vite";
import type { DryRun } from "../src/lib/dry-run";
import type { Page, Status } from "../src/lib/types";
import { checkpoints, fakeJobs, type FakeJob } from "./fake-data.ts";
import { dryRunEvents, fakeDryRuns } from "./fake-dry-runs.ts";

const AFTER: Record<string, Status> = { pause: "pausing", resume: "running", cancel: "cancelled" };

class Refusal extends Error {
  constructor(readonly status: number, message: string, readonly code: string | null = null) {
    super(message);
  }
}

export function fakeApi(): Plugin {
  const jobs = fakeJobs();
  const dryRuns = fakeDryRuns();
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    try {
      if (request.headers.authorization === "Bearer wrong") throw new Refusal(401, "Incorrect API key provided.", "invalid_api_key");
      reply(response, 200, answer({ jobs, dryRuns }, request));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      reply(response, error.status, { error: { message: error.message, type: "invalid_request_error", param: null, code: error.code } });
    }
  };
  return {
    name: "fake-api",
    configureServer: (server) => void server.middlewares.use("/v1", handle),
    configurePreviewServer: (server) => void server.middlewares.use("/v1", handle),
  };
}

interface Store {
  jobs: FakeJob[];
  dryRuns: DryRun[];
}

function answer({ jobs, dryRuns }: Store, request: IncomingMessage): unknown {
  const url = new URL(request.url ?? "/", "http://fake");
  const [area, kind, id, part] = url.pathname.slice(1).split("/").map(decodeURIComponent);
  if (area === "files") return file(jobs, kind!, id === "content");
  if (kind === "dry_runs") return id === undefined ? page(dryRuns, url) : dryRun(dryRuns, id, part, url);
  if (kind !== "jobs") throw new Refusal(404, `Unknown path ${url.pathname}`);
  if (id === undefined) return page(jobs.map((fake) => fake.job), url);
  const fake = jobs.find(({ job }) => job.id === id);
  if (!fake) throw new Refusal(404, `Could not find fine tune: ${id}. GET /v1/fine_tuning/jobs lists them.`, "fine_tune_not_found");
  if (part === "events") return page(fake.events, url);
  if (part === "checkpoints") return page(checkpoints(fake), url);
  if (part && AFTER[part]) fake.job.status = AFTER[part];
  return fake.job;
}

function dryRun(runs: DryRun[], id: string, part: string | undefined, url: URL): unknown {
  const run = runs.find((entry) => entry.id === id);
  if (!run) throw new Refusal(404, `Could not find dry run: ${id}. GET /v1/fine_tuning/dry_runs lists them.`);
  if (part === "events") return page(dryRunEvents(run), url);
  if (part === "cancel") run.status = "cancelled";
  return run;
}

function page<T extends { id: string }>(all: T[], url: URL): Page<T> {
  const start = all.findIndex((entry) => entry.id === url.searchParams.get("after")) + 1;
  const limit = Number(url.searchParams.get("limit") ?? 20);
  return { data: all.slice(start, start + limit), has_more: start + limit < all.length };
}

function file(jobs: FakeJob[], id: string, content: boolean): unknown {
  const found = jobs.flatMap((fake) => [...fake.files]).find(([entry]) => entry.id === id);
  if (!found) throw new Refusal(404, `No such File object: ${id}. GET /v1/files lists them.`);
  return content ? found[1] : found[0];
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}
