/** What went wrong in grading, and where judges do not agree with themselves. */
import type { Disagreement, FailureGroup, Report } from "../../lib/dry-run";
import { number, percent, whole } from "../../lib/format";
import { Name, Panel } from "../basics";
import { FailureKind } from "../failure-kind";
import { Examples } from "./examples";

export const Failures = ({ failures }: { failures: readonly FailureGroup[] }) => (
  <Panel title="Grading failures" aside={<small>by kind and grader</small>}>
    {failures.length === 0 && <p class="muted">None.</p>}
    <ul class="rows">
      {failures.map((group) => (
        <li key={`${group.kind} ${group.grader}`}>
          <FailureKind {...group} graders={group.grader === null ? [] : [group.grader]}>
            <Examples examples={group.examples} />
          </FailureKind>
          <span class="amount">
            <b>{whole(group.count)}</b> <small>{percent(group.share)}</small>
            {group.stood_in > 0 && <small>{whole(group.stood_in)} by invalid_grade</small>}
          </span>
        </li>
      ))}
    </ul>
  </Panel>
);

export const Agreement = ({ judges }: { judges: readonly Disagreement[] }) => (
  <Panel title="Judges' agreement" aside={<small>of the votes of one judge: 1 always, 0 never</small>}>
    <ul class="rows">
      {judges.map(({ grader, judged, agreement_mean, agreement_p10, examples }) => (
        <li key={grader}>
          <div class="kind">
            <b><Name text={grader} /></b>
            <small>{whole(judged)} completions judged</small>
            <Examples examples={examples} />
          </div>
          <span class="amount">
            <b>{number(agreement_mean)}</b> <small>mean</small>
            <small>worst tenth {number(agreement_p10)}</small>
          </span>
        </li>
      ))}
    </ul>
  </Panel>
);

export const Hints = ({ hints }: { hints: Report["hints"] }) => (
  <Panel title="Odd completions" aside={<small>that scored all the same</small>}>
    <ul class="rows">
      {hints.map(({ hint, count, examples }) => (
        <li key={hint}>
          <div class="kind">
            {hint}
            <Examples examples={examples} />
          </div>
          <b>{whole(count)}</b>
        </li>
      ))}
    </ul>
  </Panel>
);
