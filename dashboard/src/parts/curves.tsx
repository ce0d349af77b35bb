/** The charts of a job. */
import { number } from "../lib/format";
import { dense, finite, sparse, type Cell, type Curves, type Row } from "../lib/series";
import type { Data } from "../lib/types";
import { Chart } from "./chart";
import { areOffline, OfflineCurves } from "./offline-curves";

export function CurvePanels({ rows: { rl, warmStart }, base }: { rows: Curves; base: number | null }) {
  if (areOffline(rl)) return <OfflineCurves rows={rl} />;
  const steps = rl.map((row) => row.step);
  const column = (key: string, label: string, color: string) => ({ label, color, cells: dense(rl, key) });
  return (
    <>
      <div class="charts">
        <Chart
          title="Reward"
          steps={steps}
          note="by training step"
          lines={[
            column("train_mean_reward", "train", "--series-1"),
            { label: "validation", cells: sparse(rl, "full_valid_mean_reward"), color: "--series-2", points: true },
            { label: "base model", cells: rl.map(() => base), color: "--series-base", reference: true },
          ]}
        />
        {warmStart.length > 0 && (
          <Chart
            title="Warm-start loss"
            axis="warm start"
            steps={warmStart.map((row) => row.step)}
            note={bestReward(warmStart)}
            lines={[{ label: "train", cells: dense(warmStart, "train_loss"), color: "--series-1" }]}
          />
        )}
      </div>
      {rl.length > 0 && (
        <div class="charts small">
          <GraderChart rows={rl} steps={steps} />
          <Chart title="Completion length" steps={steps} lines={[column("completion_tokens_mean", "tokens", "--series-1")]} />
          <Chart title="Cut-off completions" steps={steps} lines={[column("truncated_share", "share", "--series-5")]} />
          <Chart
            title="Drift, nats per token"
            steps={steps}
            lines={[column("kl_to_reference", "KL to reference", "--series-3"), column("mismatch_mean", "sampler mismatch", "--series-4")]}
          />
        </div>
      )}
    </>
  );
}

function bestReward(warmStart: readonly Row[]): string {
  const values = sparse(warmStart, "full_valid_mean_reward").filter((cell) => typeof cell === "number");
  return values.length === 0 ? "" : `best validation reward ${number(Math.max(...values))}`;
}

/** Validation reward of each grader, for jobs with more than one. */
function GraderChart({ rows, steps }: { rows: readonly Row[]; steps: number[] }) {
  const scores = rows.map((row) => graderScores(row.data));
  const names = [...new Set(scores.flatMap((of) => Object.keys(of)))];
  if (names.length < 2) return null;
  const lines = names.map((label, index) => {
    const cells: Cell[] = scores.map((of) => of[label]);
    return { label, cells, color: `--series-${(index % 5) + 1}`, points: true };
  });
  return <Chart title="Validation by grader" steps={steps} lines={lines} />;
}

interface GraderScore {
  name: string;
  type: string;
  valid_reward_mean: unknown;
}

function graderScores(data: Data): Record<string, number> {
  const { graders = [] } = (data.scores ?? {}) as { graders?: GraderScore[] };
  // The multi grader's own value is the validation reward itself.
  const parts = graders.filter(({ type }) => type !== "multi");
  const pairs = parts.map(({ name, valid_reward_mean: mean }) => [name, finite(mean)] as const);
  return Object.fromEntries(pairs.filter((pair): pair is readonly [string, number] => pair[1] !== null));
}
