/** Events, checkpoints and configuration of a job. */
import { useState } from "preact/hooks";
import { clock, dateTime, number } from "../lib/format";
import { finite } from "../lib/series";
import { settings, type Checkpoint, type Data, type Job, type JobEvent } from "../lib/types";
import { Choice, Copyable, Facts, Panel } from "./basics";

const SHOWN = 60;
const FILTERS: Record<string, (event: JobEvent) => boolean> = {
  Messages: (event) => event.type !== "metrics",
  Problems: (event) => event.level !== "info",
  All: () => true,
};

export function EventList({ events }: { events: readonly JobEvent[] }) {
  const [filter, setFilter] = useState("Messages");
  const [limit, setLimit] = useState(SHOWN);
  const chosen = events.filter(FILTERS[filter]!);
  const choice = <Choice label="Which events" tests={FILTERS} of={events} chosen={filter} choose={setFilter} />;
  return (
    <Panel title="Events" aside={choice}>
      {chosen.length === 0 && <p class="muted">None.</p>}
      <ol class="events">
        {chosen.slice(0, limit).map((event) => (
          <li key={event.id} class={event.level}>
            <time title={dateTime(event.created_at)}>{clock(event.created_at)}</time>
            <span>{event.message}</span>
          </li>
        ))}
      </ol>
      {chosen.length > limit && <button class="link" onClick={() => setLimit(limit * 5)}>Show older ({chosen.length - limit})</button>}
    </Panel>
  );
}

export const CheckpointList = ({ checkpoints }: { checkpoints: readonly Checkpoint[] }) => (
  <Panel title="Checkpoints" aside={<small>usable as a model name</small>}>
    {checkpoints.length === 0 && <p class="muted">None yet.</p>}
    <ul class="rows">
      {checkpoints.map((checkpoint) => (
        <li key={checkpoint.id} title={dateTime(checkpoint.created_at)}>
          <b>Step {checkpoint.step_number}</b>
          <small>{validated(checkpoint.metrics)}</small>
          <Copyable text={checkpoint.fine_tuned_model_checkpoint} />
        </li>
      ))}
    </ul>
  </Panel>
);

/** What the validation file said of a checkpoint; jobs without rewards have losses. */
function validated(metrics: Data): string {
  const [name, key] = "train_loss" in metrics ? ["loss", "full_valid_loss"] : ["reward", "full_valid_mean_reward"];
  return `validation ${name} ${number(finite(metrics[key!]))}`;
}

export function Configuration({ job }: { job: Job }) {
  const block = settings(job) as { hyperparameters?: Data; warm_start?: Data };
  const { training_file, validation_file, seed } = job;
  return (
    <Panel title="Configuration">
      <Facts facts={written({ training_file, validation_file, seed, ...job.metadata })} />
      {block.hyperparameters && <h4>Hyperparameters</h4>}
      <Facts facts={written(block.hyperparameters)} />
      {block.warm_start && <h4>Warm start</h4>}
      <Facts facts={written(block.warm_start)} />
      <details>
        <summary>Method as JSON</summary>
        <pre>{JSON.stringify(job.method, null, 2)}</pre>
      </details>
    </Panel>
  );
}

const written = (values: Data = {}): Record<string, string> => {
  const known = Object.entries(values).filter(([, value]) => value != null);
  return Object.fromEntries(known.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]));
};
