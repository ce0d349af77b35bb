/** What became of the completions: outcomes kept apart, failures by kind, each grader's course. */
import { useMemo } from "preact/hooks";
import { latency, NONE, percent, whole } from "../lib/format";
import {
  completionsPerStep, failureExamples, failureHistories, graderStep, histories, outcomes, type FailureHistory, type GraderHistory,
} from "../lib/graders";
import type { Row } from "../lib/series";
import { settings, type Job, type JobEvent } from "../lib/types";
import { Name, Panel } from "./basics";
import { Chart } from "./chart";
import { FailureKind } from "./failure-kind";
import { Sparkline } from "./sparkline";

export function GraderHealth({ rows, job, events }: { rows: readonly Row[]; job: Job; events: readonly JobEvent[] }) {
  const perStep = completionsPerStep(settings(job).hyperparameters);
  const graded = useMemo(() => rows.map(graderStep), [rows]);
  const { scored, abstained, failed } = useMemo(() => outcomes(rows, perStep), [rows, perStep]);
  const failures = useMemo(() => failureHistories(graded), [graded]);
  const examples = useMemo(() => failureExamples(events), [events]);
  const graders = useMemo(() => histories(graded), [graded]);
  return (
    <>
      <div class="charts">
        <Chart
          title={perStep === null ? "Outcomes, share of completions" : "Outcomes, completions"}
          stacked
          write={perStep === null ? (share) => percent(share) : whole}
          steps={rows.map((row) => row.step)}
          note="by training step"
          lines={[
            { label: "scored", cells: scored, color: "--rest" },
            { label: "abstained", cells: abstained, color: "--series-base" },
            { label: "failed", cells: failed, color: "--bad" },
          ]}
        />
        <FailurePanel failures={failures} examples={examples} steps={rows.length} />
      </div>
      {graders.length > 0 && <GraderTable graders={graders} />}
    </>
  );
}

interface FailureProps {
  failures: readonly FailureHistory[];
  examples: ReadonlyMap<string, string>;
  steps: number;
}

const FailurePanel = ({ failures, examples, steps }: FailureProps) => (
  <Panel title="Grading failures" aside={<small>{steps === 1 ? "1 step" : `${steps} steps`}, also where invalid_grade stood in</small>}>
    {failures.length === 0 && <p class="muted">None.</p>}
    <ul class="rows">
      {failures.map(({ kind, graders, total, cells }) => (
        <li key={kind}>
          <FailureKind kind={kind} graders={graders} detail={examples.get(kind)} />
          <Sparkline values={cells} write={() => whole(total)} />
        </li>
      ))}
    </ul>
  </Panel>
);

const GraderTable = ({ graders }: { graders: readonly GraderHistory[] }) => (
  <Panel title="Graders" aside={<small>training completions, by step</small>}>
    <div class="scroll">
      <table class="stack">
        <thead>
          <tr>{["Grader", "Mean score", "Failed", "Abstained", "Latency", "Tokens"].map((name) => <th key={name}>{name}</th>)}</tr>
        </thead>
        <tbody>
          {graders.map((grader) => (
            <tr key={grader.name}>
              <th scope="row" class="name"><Name text={grader.name} note={grader.type} /></th>
              <td data-label="Mean score"><Sparkline values={grader.mean} /></td>
              <td data-label="Failed">{counted(grader.failures)}</td>
              <td data-label="Abstained">{counted(grader.abstained)}</td>
              <td data-label="Latency"><Sparkline values={grader.latency} write={latency} /></td>
              <td data-label="Tokens">{counted(grader.tokens || null)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </Panel>
);

const counted = (n: number | null) => (n === null ? <span class="muted">{NONE}</span> : whole(n));
