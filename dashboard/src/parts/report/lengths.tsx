/** How long the completions are, and how many were cut. */
import type { Report } from "../../lib/dry-run";
import { percent, whole } from "../../lib/format";
import { Facts, Panel } from "../basics";

export function Lengths({ report: { lengths, truncation } }: { report: Report }) {
  const place = (tokens: number) => `${Math.min(100, (tokens / Math.max(1, lengths.limit)) * 100)}%`;
  return (
    <Panel title="Length" aside={<small>tokens of a completion</small>}>
      <svg class="box" width="100%" height="22" aria-hidden="true">
        <line class="axis" x1="0" x2="100%" y1="11" y2="11" />
        <line class="span" x1={place(lengths.p10)} x2={place(lengths.p90)} y1="11" y2="11" />
        <line class="mark" x1={place(lengths.p50)} x2={place(lengths.p50)} y1="4" y2="18" />
        <line class="limit" x1="100%" x2="100%" y1="2" y2="20" />
      </svg>
      <Facts
        facts={{
          "10 %": whole(lengths.p10), Median: whole(lengths.p50), Mean: whole(lengths.mean), "90 %": whole(lengths.p90),
          Longest: whole(lengths.longest), Limit: whole(lengths.limit),
        }}
      />
      <p class="foot">
        {whole(truncation.count)} <small>({percent(truncation.share)}) were cut off at the limit; such completions teach nothing.</small>
      </p>
    </Panel>
  );
}
