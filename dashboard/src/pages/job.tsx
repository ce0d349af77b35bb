import type { ComponentChild } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ApiError, type Action, type Api } from "../lib/api";
import { firstLook } from "../lib/dry-run";
import { baseReward, stagesSoFar } from "../lib/evaluation";
import { JobFeed, type JobView } from "../lib/feed";
import { ago, dateTime, duration } from "../lib/format";
import { shownExamples } from "../lib/graders";
import { useNow, usePoll } from "../lib/poll";
import { progress } from "../lib/progress";
import { curves, type Curves } from "../lib/series";
import { isFinished, settings, title, type Job, type JobEvent, type Status } from "../lib/types";
import { Badge, Bar, Copyable, Facts, Notice, steps, timeLeft, Trouble } from "../parts/basics";
import { CurvePanels } from "../parts/curves";
import { EvaluationTable } from "../parts/evaluation-table";
import { FirstLookPanel } from "../parts/first-look";
import { GraderHealth } from "../parts/grader-health";
import { CheckpointList, Configuration, EventList } from "../parts/lists";
import { areOffline } from "../parts/offline-curves";
import { Examples } from "../parts/report/examples";

const LIVE_MS = 2_000;
const ACTIONS: Partial<Record<Status, Action[]>> = {
  validating_files: ["cancel"],
  queued: ["cancel"],
  running: ["pause", "cancel"],
  pausing: ["cancel"],
  paused: ["resume", "cancel"],
};
const LABELS: Record<Action, string> = { pause: "Pause", resume: "Resume", cancel: "Cancel…" };

/** One job; mount with the id as `key`. */
export function JobPage({ api, id }: { api: Api; id: string }) {
  const feed = useMemo(() => new JobFeed(api, id), []);
  const poll = usePoll((signal) => feed.load(signal), ({ job }) => (isFinished(job) ? null : LIVE_MS));
  const missing = poll.error?.status === 404;
  document.title = `${poll.value ? title(poll.value.job) : id} · rft`;
  return (
    <>
      <a class="back" href="#/jobs">← Jobs</a>
      {missing ? <Notice level="error">There is no job {id} in the project of this key.</Notice> : <Trouble poll={poll} />}
      {!poll.value && !poll.error && <p class="muted">Loading…</p>}
      {poll.value && <View api={api} view={poll.value} refresh={poll.refresh} />}
    </>
  );
}

function View({ api, view, refresh }: { api: Api; view: JobView; refresh: () => void }) {
  const { job, events, checkpoints } = view;
  const rows = useMemo(() => curves(events), [events]);
  const look = useMemo(() => firstLook(events), [events]);
  const { dry_run } = settings(job);
  const evaluation = view.evaluation === "unreadable" ? null : (view.evaluation ?? stagesSoFar(events));
  return (
    <>
      <div class="heading">
        <h1>{title(job)}</h1>
        <Badge status={job.status} />
        <Controls api={api} job={job} refresh={refresh} />
      </div>
      <Explanation job={job} events={events} />
      <Overview job={job} rows={rows} events={events} />
      {view.evaluation === "unreadable" && <Notice level="warn">The job's evaluation.json is not an evaluation report.</Notice>}
      {evaluation && evaluation.stages.length > 0 && <EvaluationTable evaluation={evaluation} />}
      {rows.rl.length + rows.warmStart.length > 0 && <CurvePanels rows={rows} base={baseReward(evaluation)} />}
      {rows.rl.length > 0 && !areOffline(rows.rl) && <GraderHealth rows={rows.rl} job={job} events={events} />}
      <div class="columns">
        <EventList events={events} />
        <div>
          <FirstLookPanel look={look} dryRun={typeof dry_run === "string" ? dry_run : null} />
          <CheckpointList checkpoints={checkpoints} />
          <Configuration job={job} />
        </div>
      </div>
    </>
  );
}

/** Why the job failed or paused, in the words of the server, with what it shows of it. */
function Explanation({ job, events }: { job: Job; events: readonly JobEvent[] }) {
  const { error } = job;
  const problem = job.status === "paused" ? events.find((event) => event.level === "error") : undefined;
  const message = error?.message || problem?.message;
  if (!message) return null;
  const where = [error?.code, error?.param].filter(Boolean).join(", ");
  return (
    <Notice level={error?.message ? "error" : "warn"}>
      {message} {where && <small>({where})</small>}
      <Examples examples={shownExamples(events, message)} />
    </Notice>
  );
}

function Controls({ api, job, refresh }: { api: Api; job: Job; refresh: () => void }) {
  const [busy, setBusy] = useState(false);
  const [sure, setSure] = useState(false);
  const [problem, setProblem] = useState("");
  const act = async (action: Action) => {
    setBusy(true);
    setProblem("");
    try {
      await api.act(job.id, action);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setProblem(error.message);
    }
    setBusy(false);
    setSure(false);
    refresh();
  };
  const ask = (action: Action) => (action === "cancel" ? setSure(true) : void act(action));
  return (
    <span class="controls">
      {problem && <span class="problem" role="alert">{problem}</span>}
      {!sure &&
        ACTIONS[job.status]?.map((action) => (
          <button key={action} class={action} disabled={busy} onClick={() => ask(action)}>{LABELS[action]}</button>
        ))}
      {sure && <button class="danger" disabled={busy} onClick={() => void act("cancel")}>Cancel for good</button>}
      {sure && <button onClick={() => setSure(false)}>Keep</button>}
    </span>
  );
}

function Overview({ job, rows, events }: { job: Job; rows: Curves; events: readonly JobEvent[] }) {
  const now = useNow(!isFinished(job));
  const done = progress(job, rows, now);
  const moving = !isFinished(job) && job.status !== "paused";
  const latest = moving && events.find((event) => event.type !== "metrics");
  const facts: Record<string, ComponentChild> = {
    [done?.phase === "warm start" ? "Warm-start step" : "Step"]: steps(done),
    "Time left": job.status === "running" ? timeLeft(done) : null,
    Created: <span title={dateTime(job.created_at)}>{ago(job.created_at, now)}</span>,
    Took: job.finished_at && <span title={dateTime(job.finished_at)}>{duration(job.finished_at - job.created_at)}</span>,
    "Base model": job.model,
    Method: job.method?.type ?? "supervised",
    "Trained tokens": job.trained_tokens?.toLocaleString("en"),
    Job: <Copyable text={job.id} />,
    Model: job.fine_tuned_model && <Copyable text={job.fine_tuned_model} />,
  };
  return (
    <section class="panel overview">
      <Bar progress={done} status={job.status} />
      <Facts facts={facts} />
      {latest && <p class="latest">{latest.message}</p>}
    </section>
  );
}
