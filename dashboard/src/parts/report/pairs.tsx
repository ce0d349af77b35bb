/** Completions that scored high although they are unlike the reference, beside it. */
import { useState } from "preact/hooks";
import type { Report, SuspiciousPair } from "../../lib/dry-run";
import { number } from "../../lib/format";
import { Panel } from "../basics";
import { Text } from "./examples";

const SHOWN = 5;

export function Pairs({ report: { suspicious, by_row } }: { report: Report }) {
  const [limit, setLimit] = useState(SHOWN);
  const { pairs, how, compared } = suspicious;
  const prompts = new Map(by_row.map(({ row, prompt }) => [row, prompt]));
  return (
    <Panel title="Most suspicious pairs" aside={<small>high score, unlike the reference · {compared} compared</small>}>
      <p class="muted">{how}</p>
      {compared > 0 && pairs.length === 0 && <p class="muted">None.</p>}
      {pairs.slice(0, limit).map((pair, at) => <Pair key={at} pair={pair} prompt={prompts.get(pair.row)} />)}
      {pairs.length > limit && <button class="link" onClick={() => setLimit(limit * 5)}>Show more ({pairs.length - limit})</button>}
    </Panel>
  );
}

const Pair = ({ pair: { row, text, reference, score, similarity, hints }, prompt }: { pair: SuspiciousPair; prompt: string | undefined }) => (
  <article class="pair">
    <header>
      <span>Row {row}</span>
      <span>score <b>{number(score)}</b></span>
      <span>similarity <b>{number(similarity)}</b></span>
      {hints.map((hint) => <span key={hint} class="chip">{hint}</span>)}
    </header>
    <div class="beside">
      {prompt !== undefined && <div><small>Prompt</small><Text text={prompt} /></div>}
      {reference !== null && <div><small>Reference</small><Text text={reference} /></div>}
      <div><small>Completion</small><Text text={text} /></div>
    </div>
  </article>
);
