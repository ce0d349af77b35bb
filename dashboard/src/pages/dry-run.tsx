import type { ComponentChild } from "preact";
import { useState } from "preact/hooks";
import { ApiError, type Api } from "../lib/api";
import { isOver, VERSION, type DryRun, type Report } from "../lib/dry-run";
import { ago, dateTime, duration, whole } from "../lib/format";
import { shownExamples } from "../lib/graders";
import { useNow, usePoll } from "../lib/poll";
import { record } from "../lib/read";
import { settings, type JobEvent } from "../lib/types";
import { Badge, Copyable, Facts, Notice, Track, Trouble } from "../parts/basics";
import { EventList } from "../parts/lists";
import { EstimatePanel } from "../parts/report/estimate";
import { Examples } from "../parts/report/examples";
import { GraderUses } from "../parts/report/graders";
import { Lengths } from "../parts/report/lengths";
import { Pairs } from "../parts/report/pairs";
import { Agreement, Failures, Hints } from "../parts/report/problems";
import { Rows } from "../parts/report/rows";
import { Scores } from "../parts/report/scores";
import { VerdictPanel } from "../parts/report/verdict";

const LIVE_MS = 2_000;

/** One dry run; mount with the id as `key`. */
export function DryRunPage({ api, id }: { api: Api; id: string }) {
  const poll = usePoll((signal) => load(api, id, signal), ({ run }) => (isOver(run) ? null : LIVE_MS));
  const { value, error } = poll;
  document.title = `Dry run ${id} · rft`;
  return (
    <>
      <a class="back" href="#/dry-runs">← Dry runs</a>
      {error?.status === 404 ? <Notice level="error">There is no dry run {id} in the project of this key.</Notice> : <Trouble poll={poll} />}
      {!value && !error && <p class="muted">Loading…</p>}
      {value && <DryRunView {...value} cancel={<CancelButton api={api} id={id} refresh={poll.refresh} />} />}
    </>
  );
}

interface View {
  run: DryRun;
  events: JobEvent[];
}

/** The dry run first: when it is over, the events that are read after it are all. */
async function load(api: Api, id: string, signal: AbortSignal): Promise<View> {
  const run = await api.dryRun(id, signal);
  return { run, events: (await api.dryRunEvents(id, signal)).data };
}

function DryRunView({ run, events, cancel }: View & { cancel: ComponentChild }) {
  const { error, report } = run;
  return (
    <>
      <div class="heading">
        <h1>Dry run of {run.model}</h1>
        <Badge status={run.status} />
        {!isOver(run) && cancel}
      </div>
      {error && (
        <Notice level="error">
          {error.message} {error.code && <small>({error.code})</small>}
          <Examples examples={shownExamples(events, error.message ?? "")} />
        </Notice>
      )}
      {report?.version === VERSION && <VerdictPanel report={report} />}
      <Overview run={run} />
      {report && <ReportView report={report} />}
      <EventList events={events} />
    </>
  );
}

function CancelButton({ api, id, refresh }: { api: Api; id: string; refresh: () => void }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const cancel = async () => {
    setBusy(true);
    try {
      await api.cancelDryRun(id);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setProblem(error.message);
    }
    setBusy(false);
    refresh();
  };
  return (
    <span class="controls">
      {problem && <span class="problem" role="alert">{problem}</span>}
      <button disabled={busy} onClick={() => void cancel()}>Cancel</button>
    </span>
  );
}

function Overview({ run }: { run: DryRun }) {
  const now = useNow(!isOver(run));
  const { progress, report, finished_at } = run;
  const grader = record(settings(run).grader);
  const facts: Record<string, ComponentChild> = {
    Completions: progress && `${whole(progress.done)} / ${whole(progress.total)}`,
    Rows: report ? `${whole(report.rows)} of ${whole(report.rows_in_file)}` : run.rows,
    "Completions a row": report?.samples_per_row ?? run.samples_per_row,
    Temperature: report?.temperature,
    Grader: grader.name ? `${String(grader.name)} (${String(grader.type)})` : null,
    Created: <span title={dateTime(run.created_at)}>{ago(run.created_at, now)}</span>,
    Took: finished_at && <span title={dateTime(finished_at)}>{duration(finished_at - run.created_at)}</span>,
    "Training file": <Copyable text={run.training_file} />,
    "Dry run": <Copyable text={run.id} />,
    Samples: run.samples_file && <Copyable text={run.samples_file} />,
  };
  return (
    <section class="panel overview">
      {!isOver(run) && <Track fraction={progress && progress.total > 0 ? progress.done / progress.total : 0} status={run.status} />}
      <Facts facts={facts} />
    </section>
  );
}

function ReportView({ report }: { report: Report }) {
  if (report.version !== VERSION) return <Notice level="warn">This page cannot read a report of version {report.version}.</Notice>;
  return (
    <>
      <Scores report={report} />
      <div class="halves">
        <div>
          <Failures failures={report.failures} />
          {report.hints.length > 0 && <Hints hints={report.hints} />}
        </div>
        <div>
          <Lengths report={report} />
          {report.disagreement.length > 0 && <Agreement judges={report.disagreement} />}
        </div>
      </div>
      <Pairs report={report} />
      {report.graders.length > 0 && <GraderUses graders={report.graders} />}
      <EstimatePanel estimate={report.estimate} />
      <Rows rows={report.by_row} />
    </>
  );
}
