/** What the figures mean, before the figures. */
import type { Report } from "../../lib/dry-run";
import { number, percent, roughly, share, span, whole } from "../../lib/format";
import { Prose } from "../prose";

export function VerdictPanel({ report }: { report: Report }) {
  const { verdict, groups, solved, score, outcomes, truncation, estimate, completions } = report;
  return (
    <section class={`panel verdict ${verdict.level}`}>
      <h2><Prose text={verdict.message} /></h2>
      {verdict.advice.length > 0 && <ul>{verdict.advice.map((line) => <li key={line}><Prose text={line} /></li>)}</ul>}
      <dl class="figures">
        <Figure name="Groups that teach" value={share(groups.with_spread, groups.total)} note={`${whole(groups.with_spread)} of ${whole(groups.total)} have spread`} />
        <Figure name="Solved" value={percent(solved.share.mean)} note={interval(solved.share, (value) => percent(value, 0))} />
        <Figure name="Mean score" value={number(score.mean)} note={interval(score, number)} />
        <Figure name="Failed" value={share(outcomes.failures, completions)} note={`${whole(outcomes.failures)} of ${whole(completions)} gradings`} />
        <Figure name="Cut off" value={share(truncation.count, completions)} note={`${whole(truncation.count)} of ${whole(completions)} completions`} />
        <Figure name="Full job" value={span(estimate.seconds.low, estimate.seconds.high, roughly)} note="estimated time" />
      </dl>
    </section>
  );
}

const Figure = ({ name, value, note }: { name: string; value: string; note: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>
      <b>{value}</b>
      <small>{note}</small>
    </dd>
  </div>
);

const interval = ({ low, high }: Report["score"], write: (value: number | null) => string): string =>
  low === null ? "nothing was scored" : `95 %: ${span(low, high, write)}`;
