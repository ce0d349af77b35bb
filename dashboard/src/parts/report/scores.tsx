/** Scores of the completions, and what rows, groups and outcomes they make. */
import type { Groups, Report } from "../../lib/dry-run";
import { short, whole } from "../../lib/format";
import { Panel } from "../basics";
import { Split, type Part } from "../split";
import { Histogram } from "./histogram";

export const Scores = ({ report }: { report: Report }) => (
  <div class="halves level">
    <Panel title="Scores" aside={<small>{whole(report.outcomes.scores)} of {whole(report.completions)} completions</small>}>
      <Histogram bins={report.histogram} />
    </Panel>
    <Panel title="Is there something to learn?">
      <Split title="Rows" note={`solved: a score of ${short(report.solved.at)} or more`} parts={rows(report)} />
      <Split title="Groups" note="the completions of one row" parts={groupParts(report.groups)} />
      <Split title="Outcomes" note="of grading" parts={outcomes(report)} />
    </Panel>
  </div>
);

const rows = ({ solved }: Report): Part[] => [
  { label: "never solved", count: solved.never, color: "--series-1" },
  { label: "sometimes", count: solved.sometimes, color: "--accent" },
  { label: "always", count: solved.always, color: "--series-3" },
];

/** Groups by whether a job learns from them. */
export const groupParts = (of: Groups): Part[] => [
  { label: "with spread", count: of.with_spread, color: "--accent", hint: "The completions score differently: a job learns from them." },
  { label: "all the same", count: of.all_same, color: "--series-1", hint: "One score throughout, below solved." },
  { label: "all solved", count: of.all_solved, color: "--series-3" },
  { label: "too few", count: of.too_few, color: "--series-base", hint: "Fewer than two completions that can be compared." },
];

const outcomes = ({ outcomes: of }: Report): Part[] => [
  { label: "scored", count: of.scores - of.stood_in, color: "--series-1" },
  { label: "by invalid_grade", count: of.stood_in, color: "--series-4", hint: "Grading failed and invalid_grade stood in." },
  { label: "abstained", count: of.abstentions, color: "--series-base" },
  { label: "failed", count: of.failures, color: "--bad" },
];
