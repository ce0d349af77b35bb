import { useState } from "preact/hooks";
import type { Api } from "../lib/api";
import { isOver, type DryRun } from "../lib/dry-run";
import { ago, dateTime, NONE, percent, whole } from "../lib/format";
import { useNow, usePoll } from "../lib/poll";
import { dryRunHref } from "../lib/route";
import { Badge, Track, Trouble } from "../parts/basics";

const LIVE_MS = 4_000;
const IDLE_MS = 15_000;
const PAGE = 20;
const MOST = 100;
const COLUMNS = ["Dry run", "State", "Verdict", "Solved", "Completions", "Training file", "Created"];

export function DryRunsPage({ api }: { api: Api }) {
  const [limit, setLimit] = useState(PAGE);
  const poll = usePoll((signal) => api.dryRuns(limit, signal), ({ data }) => (data.every(isOver) ? IDLE_MS : LIVE_MS));
  const { data: runs, has_more } = poll.value ?? {};
  document.title = "Dry runs · rft";
  const more = () => {
    setLimit(limit + PAGE);
    poll.refresh();
  };
  return (
    <>
      <h1>Dry runs</h1>
      <Trouble poll={poll} />
      {!runs && !poll.error && <p class="muted">Loading…</p>}
      {runs?.length === 0 && (
        <div class="panel blank">
          <h3>No dry runs yet</h3>
          <p class="muted">
            A dry run samples and grades a few rows before a job spends hours on them: <code>POST /v1/fine_tuning/dry_runs</code>.
          </p>
        </div>
      )}
      {runs && runs.length > 0 && (
        <div class="panel scroll">
          <table class="jobs dry-runs stack">
            <thead>
              <tr>{COLUMNS.map((name) => <th key={name}>{name}</th>)}</tr>
            </thead>
            <tbody>{runs.map((run) => <DryRunRow key={run.id} run={run} />)}</tbody>
          </table>
        </div>
      )}
      {has_more && (limit < MOST ? <button onClick={more}>Show more</button> : <p class="muted">The newest {MOST} dry runs are shown.</p>)}
    </>
  );
}

function DryRunRow({ run }: { run: DryRun }) {
  const now = useNow(!isOver(run));
  const href = dryRunHref(run.id);
  const { report, progress, error } = run;
  return (
    <tr onClick={() => (location.hash = href)}>
      <td class="name">
        <a href={href}>{run.model}</a>
        <small>{run.id}</small>
      </td>
      <td><Badge status={run.status} /></td>
      <td class="sentence">
        {report && <span class={`mark ${report.verdict.level}`}>{report.verdict.message}</span>}
        {error && <span class="told">{error.message}</span>}
        {!report && !error && <span class="muted">{NONE}</span>}
      </td>
      <td data-label="Solved">{report ? percent(report.solved.share.mean, 0) : <span class="muted">{NONE}</span>}</td>
      <td data-label="Completions">
        {progress && !isOver(run) && <Track fraction={progress.total > 0 ? progress.done / progress.total : 0} status={run.status} />}
        {progress ? whole(progress.done) : <span class="muted">{NONE}</span>}
      </td>
      <td data-label="Training file"><code>{run.training_file}</code></td>
      <td data-label="Created" title={dateTime(run.created_at)}>{ago(run.created_at, now)}</td>
    </tr>
  );
}
