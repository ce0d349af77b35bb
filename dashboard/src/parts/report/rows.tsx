/** Every row with the scores of its completions. */
import { useState } from "preact/hooks";
import { ROW_FILTERS, scale, type RowResult } from "../../lib/dry-run";
import { number } from "../../lib/format";
import { Choice, Panel } from "../basics";

const SHOWN = 25;

export function Rows({ rows }: { rows: readonly RowResult[] }) {
  const [filter, setFilter] = useState("All");
  const [limit, setLimit] = useState(SHOWN);
  const chosen = rows.filter(ROW_FILTERS[filter]!);
  const place = scale(rows);
  return (
    <Panel title="Rows" aside={<Choice label="Which rows" tests={ROW_FILTERS} of={rows} chosen={filter} choose={setFilter} />}>
      <p class="muted">One mark a completion: the stronger, the higher its score; an outline has none.</p>
      {chosen.length === 0 && <p class="muted">None.</p>}
      <ul class="rows prompts">
        {chosen.slice(0, limit).map((row) => (
          <li key={row.row}>
            <small>{row.row}</small>
            <span class="prompt">{row.prompt}</span>
            <Strip row={row} place={place} />
            <small class="amount">{row.solved} / {row.scores.length} solved</small>
          </li>
        ))}
      </ul>
      {chosen.length > limit && <button class="link" onClick={() => setLimit(limit * 4)}>Show more ({chosen.length - limit})</button>}
    </Panel>
  );
}

/** One mark a completion, the fuller the higher its score; hollow without one. */
function Strip({ row: { scores }, place }: { row: RowResult; place: (score: number) => number }) {
  const told = scores.map((score) => (score === null ? "no score" : number(score))).join(", ");
  return (
    <span class="strip" role="img" aria-label={told} title={told}>
      {scores.map((score, at) =>
        score === null ? <i key={at} class="none" /> : <i key={at} style={{ opacity: 0.14 + 0.86 * place(score) }} />,
      )}
    </span>
  );
}
