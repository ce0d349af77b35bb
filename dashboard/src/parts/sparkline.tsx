/** The course of a value in one table cell, with its last value. */
import { NONE, number } from "../lib/format";
import { lastValue, pieces, thin, type Cell } from "../lib/series";

const WIDTH = 96;
const HEIGHT = 24;
const INSET = 3;

interface Props {
  values: readonly Cell[];
  write?: (value: number | null) => string;
}

export function Sparkline({ values, write = number }: Props) {
  const cells = thin(values, WIDTH);
  const parts = pieces(cells);
  if (parts.length === 0) return <span class="muted">{NONE}</span>;
  const heights = parts.flat().map(([, value]) => value);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const place = ([at, value]: [number, number]): [number, number] => [
    INSET + (at / Math.max(1, cells.length - 1)) * (WIDTH - 2 * INSET),
    high === low ? HEIGHT / 2 : HEIGHT - INSET - ((value - low) / (high - low)) * (HEIGHT - 2 * INSET),
  ];
  const [x, y] = place(parts.at(-1)!.at(-1)!);
  return (
    <span class="spark">
      <svg width={WIDTH} height={HEIGHT} role="img" aria-label={`from ${write(heights[0]!)}`}>
        {parts.map((part) => <polyline key={part[0]![0]} points={[...part, part.at(-1)!].map(place).join(" ")} />)}
        <circle cx={x} cy={y} r="2.5" />
      </svg>
      {write(lastValue(values))}
    </span>
  );
}
