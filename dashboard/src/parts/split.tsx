/** One total in parts: a bar, and a legend with count and share. */
import { share, whole } from "../lib/format";

export interface Part {
  label: string;
  count: number;
  /** A CSS custom property, e.g. "--accent". */
  color: string;
  /** What the part means, where its name does not say it. */
  hint?: string;
}

export function Split({ title, note, parts }: { title: string; note?: string; parts: readonly Part[] }) {
  const total = parts.reduce((sum, { count }) => sum + count, 0);
  return (
    <div class="split">
      <h4>{title} {note && <small>{note}</small>}</h4>
      <div class="bar" aria-hidden="true">
        {parts.map(({ label, count, color }) => count > 0 && <i key={label} style={{ flexGrow: count, background: `var(${color})` }} />)}
      </div>
      <ul class="legend">
        {parts.map(({ label, count, color, hint }) => (
          <li key={label} class="key area" title={hint}>
            <i style={{ color: `var(${color})` }} />
            {label} <b>{whole(count)}</b> <small>{share(count, total)}</small>
          </li>
        ))}
      </ul>
    </div>
  );
}
