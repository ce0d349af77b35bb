/** The charts of a job that learns from fixed rows: supervised, or by preferences. */
import { dense, sparse, type Row } from "../lib/series";
import { Chart } from "./chart";

/** Whether these are steps of such a job. */
export const areOffline = (rows: readonly Row[]): boolean => rows.some((row) => "train_loss" in row.data);

export function OfflineCurves({ rows }: { rows: readonly Row[] }) {
  return (
    <>
      <div class="charts">
        <Looks rows={rows} title="Loss" figure="loss" />
        <Looks rows={rows} title="Token accuracy" figure="mean_token_accuracy" />
      </div>
      {rows.some((row) => "train_reward_accuracy" in row.data) && (
        <div class="charts">
          <Looks rows={rows} title="Pairs told apart" figure="reward_accuracy" />
          <Looks rows={rows} title="Reward margin" figure="mean_reward_margin" />
        </div>
      )}
    </>
  );
}

/** A figure of the training rows, of the first validation rows, and of all of them. */
function Looks({ rows, title, figure }: { rows: readonly Row[]; title: string; figure: string }) {
  const seen = (look: string) => sparse(rows, `${look}_${figure}`);
  return (
    <Chart
      title={title}
      note="by training step"
      steps={rows.map((row) => row.step)}
      lines={[
        { label: "train", cells: dense(rows, `train_${figure}`), color: "--series-1" },
        { label: "validation", cells: seen("valid"), color: "--series-2", points: true },
        { label: "all validation rows", cells: seen("full_valid"), color: "--series-3", points: true },
      ]}
    />
  );
}
