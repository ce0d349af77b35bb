import { useState } from "preact/hooks";
import type { Api } from "../lib/api";
import { EventLog } from "../lib/events";
import { ago, dateTime, NONE } from "../lib/format";
import { useNow, usePoll } from "../lib/poll";
import { progress } from "../lib/progress";
import { curves, finite } from "../lib/series";
import { isFinished, title, type Job } from "../lib/types";
import { Badge, Bar, steps, timeLeft, Trouble } from "../parts/basics";
import { Sparkline } from "../parts/sparkline";

const LIVE_MS = 2_000;
const IDLE_MS = 5_000;
const PAGE = 20;
const MOST = 100;
const HISTORY_PAGES = 2;
const COLUMNS = ["Job", "State", "Model", "Method", "Validation reward", "Progress", "Time left", "Created"];

export function JobsPage({ api }: { api: Api }) {
  const [limit, setLimit] = useState(PAGE);
  const poll = usePoll((signal) => api.jobs(limit, signal), ({ data }) => (data.every(isFinished) ? IDLE_MS : LIVE_MS));
  const { data: jobs, has_more } = poll.value ?? {};
  document.title = "Jobs · rft";
  const more = () => {
    setLimit(limit + PAGE);
    poll.refresh();
  };
  return (
    <>
      <h1>Fine-tuning jobs</h1>
      <Trouble poll={poll} />
      {!jobs && !poll.error && <p class="muted">Loading…</p>}
      {jobs?.length === 0 && (
        <div class="panel blank">
          <h3>No jobs yet</h3>
          <p class="muted">
            Create one with the OpenAI SDK (<code>base_url="{location.origin}/v1"</code>) and it appears here.
          </p>
        </div>
      )}
      {jobs && jobs.length > 0 && (
        <div class="panel scroll">
          <table class="jobs stack">
            <thead>
              <tr>{COLUMNS.map((name) => <th key={name}>{name}</th>)}</tr>
            </thead>
            <tbody>{jobs.map((job) => <JobRow key={job.id} api={api} job={job} />)}</tbody>
          </table>
        </div>
      )}
      {has_more && (limit < MOST ? <button onClick={more}>Show more</button> : <p class="muted">The newest {MOST} jobs are shown.</p>)}
    </>
  );
}

/** One row reads its own events, so that the table does not wait for the slowest. */
function JobRow({ api, job }: { api: Api; job: Job }) {
  const [log] = useState(() => new EventLog());
  const poll = usePoll(
    (signal) => log.refresh((after, limit) => api.events(job.id, after, limit, signal), HISTORY_PAGES),
    () => (isFinished(job) ? null : LIVE_MS),
  );
  const now = useNow(!isFinished(job));
  const rows = curves(poll.value ?? []);
  const done = progress(job, rows, now);
  const rewards = rows.rl.map((row) => finite(row.data.full_valid_mean_reward)).filter((value) => value !== null);
  const missing = <span class="muted">{NONE}</span>;
  const href = `#/jobs/${encodeURIComponent(job.id)}`;
  return (
    <tr onClick={() => (location.hash = href)}>
      <td class="name">
        <a href={href}>{title(job)}</a>
        {job.user_provided_suffix && <small>{job.id}</small>}
      </td>
      <td><Badge status={job.status} /></td>
      <td data-label="Model">{job.model}</td>
      <td class="wide-only">{job.method?.type ?? "supervised"}</td>
      <td data-label="Validation reward"><Sparkline values={rewards} /></td>
      <td data-label="Progress">{done ? <><Bar progress={done} status={job.status} /> <small>{steps(done)}</small></> : missing}</td>
      <td data-label="Time left">{done?.eta == null ? missing : timeLeft(done)}</td>
      <td data-label="Created" title={dateTime(job.created_at)}>{ago(job.created_at, now)}</td>
    </tr>
  );
}
