/** The course of a value in one table cell, with its last value. */
import { NONE, number } from "../lib/format";

const WIDTH = 96;
const HEIGHT = 24;
const INSET = 3;

export function Sparkline({ values }: { values: readonly number[] }) {
  if (values.length === 0) return <span class="muted">{NONE}</span>;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const points = values.map((value, i) => [
    INSET + (i / Math.max(1, values.length - 1)) * (WIDTH - 2 * INSET),
    HEIGHT - INSET - ((value - low) / (high - low || 1)) * (HEIGHT - 2 * INSET),
  ]);
  const [x, y] = points.at(-1)!;
  return (
    <span class="spark">
      <svg width={WIDTH} height={HEIGHT} role="img" aria-label={`from ${number(values[0])}`}>
        <polyline points={points.join(" ")} />
        <circle cx={x} cy={y} r="2.5" />
      </svg>
      {number(values.at(-1))}
    </span>
  );
}
