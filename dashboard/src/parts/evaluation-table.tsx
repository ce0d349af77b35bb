/** Base → warm start → final on the held-out rows, with 95 % intervals. */
import { NONE, number, percent, words } from "../lib/format";
import type { Evaluation, Interval, Stage } from "../lib/types";
import { Panel } from "./basics";

export function EvaluationTable({ evaluation }: { evaluation: Evaluation }) {
  const rows = evaluation.stages[0]?.held_out.rows ?? 0;
  return (
    <Panel title="Held-out evaluation" aside={<small>{rows} rows · 95 % intervals</small>}>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>Stage</th>
              <th class="wide-only">Step</th>
              <th>Mean reward</th>
              <th>Solved</th>
              <th class="whisker">Solved, 0–100 %</th>
              {evaluation.gains && <th>Gain, points</th>}
            </tr>
          </thead>
          <tbody>
            {evaluation.stages.map((stage) => (
              <StageRow key={stage.stage} stage={stage} gains={evaluation.gains} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function StageRow({ stage: { stage, step, held_out: held }, gains }: { stage: Stage; gains: Evaluation["gains"] }) {
  const gain = gains?.find(({ to }) => to === stage)?.solved;
  return (
    <tr>
      <th scope="row">{words(stage)}</th>
      <td class="wide-only">{step}</td>
      <td>
        <b>{number(held.reward.mean)}</b> <small>{range(held.reward, number)}</small>
      </td>
      <td>
        <b>{percent(held.solved.mean)}</b> <small>{range(held.solved, (value) => percent(value, 0).replace(" %", ""))}</small>
      </td>
      <td class="whisker">
        <Whisker interval={held.solved} />
      </td>
      {gains && <td>{gain ? <><b>{points(gain.mean)}</b> <small>{range(gain, (value) => points(value, 0))}</small></> : NONE}</td>}
    </tr>
  );
}

const range = ({ low, high }: Interval, write: (value: number | null) => string): string =>
  low === null ? "" : `${write(low)} – ${write(high)}`;

/** Percentage points with a sign. */
const points = (share: number | null, digits = 1): string =>
  share === null ? NONE : `${share < 0 ? "−" : "+"}${Math.abs(share * 100).toFixed(digits)}`;

function Whisker({ interval: { mean, low, high } }: { interval: Interval }) {
  if (mean === null || low === null || high === null) return null;
  return (
    <svg width="100%" height="14" aria-hidden="true">
      <line class="axis" x1="0" x2="100%" y1="7" y2="7" />
      <line class="span" x1={`${low * 100}%`} x2={`${high * 100}%`} y1="7" y2="7" />
      <circle cx={`${mean * 100}%`} cy="7" r="4" />
    </svg>
  );
}
