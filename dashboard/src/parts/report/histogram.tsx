/** How many completions got which score. */
import type { Bin } from "../../lib/dry-run";
import { short, whole } from "../../lib/format";

/** More bins than this leave no room for counts above the bars. */
const LABELLED = 12;

export function Histogram({ bins }: { bins: readonly Bin[] }) {
  const highest = Math.max(1, ...bins.map(({ count }) => count));
  if (bins.length === 0) return <p class="muted">No completion was scored.</p>;
  return (
    <div class="histogram">
      <ol>
        {bins.map(({ low, high, count }) => (
          <li key={low} title={`${short(low)} to ${short(high)}: ${whole(count)}`}>
            <span class="sr-only">{short(low)} to {short(high)}: </span>
            <small class={bins.length > LABELLED ? "sr-only" : count === 0 ? "none" : ""}>{whole(count)}</small>
            <i style={{ height: `calc((100% - 18px) * ${count / highest})` }} class={count === 0 ? "none" : ""} />
          </li>
        ))}
      </ol>
      <div class="axis" aria-hidden="true">
        {[bins[0]!.low, (bins[0]!.low + bins.at(-1)!.high) / 2, bins.at(-1)!.high].map((value) => <small key={value}>{short(value)}</small>)}
      </div>
    </div>
  );
}
