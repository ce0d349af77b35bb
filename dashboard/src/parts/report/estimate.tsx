/** Time and cost of the full job, and how the figures were made. */
import type { Estimate } from "../../lib/dry-run";
import { latency, number, roughly, span, whole } from "../../lib/format";
import { Facts, Panel } from "../basics";
import { Prose } from "../prose";

export function EstimatePanel({ estimate: { plan, measured, seconds, cost, judge_tokens, made_of } }: { estimate: Estimate }) {
  return (
    <Panel title="The full job would take" aside={<small>a range, not a promise</small>}>
      <p class="estimate">
        <b>{span(seconds.low, seconds.high, roughly)}</b>
        {cost && <span>{span(cost.low, cost.high, money)} {cost.currency} <small>at {money(cost.price_per_hour)} an hour, without judges</small></span>}
        {judge_tokens.map(({ model, low, high, cost: price }) => (
          <span key={model}>
            {price && `${span(price.low, price.high, money)} USD for `}
            {span(low, high, rounded)} tokens <small>of {model}</small>
          </span>
        ))}
      </p>
      <Facts
        facts={{
          Steps: whole(plan.steps),
          "Completions a step": `${whole(plan.prompts_per_step)} × ${whole(plan.completions_per_prompt)}`,
          "To train on": whole(plan.training_completions),
          "To evaluate": whole(plan.evaluation_completions),
          Sampling: `${rate(measured.sampling_completions_per_s)} completions/s`,
          "Sampled tokens": `${rate(measured.sampling_tokens_per_s)} /s`,
          Update: measured.update_tokens_per_s === null ? "not measured" : `${rate(measured.update_tokens_per_s)} tokens/s`,
          "One grade": latency(measured.grading_latency_mean_s),
        }}
      />
      {made_of.length > 0 && <h4>How this was made</h4>}
      <ul class="made">{made_of.map((line) => <li key={line}><Prose text={line} /></li>)}</ul>
    </Panel>
  );
}

const money = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 2 : 0 });

const rate = (value: number): string => (value >= 10 ? whole(value) : number(value));

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const rounded = (tokens: number): string => COMPACT.format(tokens);
