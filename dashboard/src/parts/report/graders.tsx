/** What each grader cost in time and tokens. */
import type { GraderUse } from "../../lib/dry-run";
import { latency, NONE, number, whole } from "../../lib/format";
import { Name, Panel } from "../basics";

const COLUMNS = ["Grader", "Mean score", "Runs", "Latency", "95 %", "Requests", "From cache", "Tokens read", "Tokens written"];

export const GraderUses = ({ graders }: { graders: readonly GraderUse[] }) => (
  <Panel title="Graders" aside={<small>latency: mean of one grade, and what 95 % stay under</small>}>
    <div class="scroll">
      <table class="stack">
        <thead>
          <tr>{COLUMNS.map((name) => <th key={name}>{name}</th>)}</tr>
        </thead>
        <tbody>
          {graders.map((use) => (
            <tr key={use.grader}>
              <th scope="row" class="name"><Name text={use.grader} note={[use.type, use.model].filter(Boolean).join(" · ")} /></th>
              {cells(use).map((value, at) => <td key={at} data-label={COLUMNS[at + 1]}>{value === NONE ? <span class="muted">{value}</span> : value}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </Panel>
);

function cells({ score_mean, runs, latency_s, attempts, cached, tokens, model }: GraderUse): string[] {
  const asked = (value: number) => (model === null ? NONE : whole(value));
  return [
    number(score_mean), whole(runs), latency(latency_s.mean), latency(latency_s.p95), asked(attempts), asked(cached),
    whole(tokens?.prompt), whole(tokens?.completion),
  ];
}
