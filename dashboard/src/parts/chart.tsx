/** A chart of lines or stacked bars (uPlot) with a legend that follows the cursor. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { number } from "../lib/format";
import { alone, hasValues, lastValue, stack, type Cell } from "../lib/series";

export interface Line {
  label: string;
  cells: Cell[];
  /** A CSS custom property, e.g. "--series-1". */
  color: string;
  /** Drawn as a thin dashed reference. */
  reference?: boolean;
  /** Marks each value: for lines that few steps carry. */
  points?: boolean;
}

interface Props {
  title: string;
  steps: number[];
  lines: Line[];
  note?: string;
  /** Charts of one axis share their cursor. */
  axis?: string;
  /** Bars on top of each other, the last line at the bottom. */
  stacked?: boolean;
  /** Writes a value of the legend. */
  write?: (value: Cell) => string;
}

const WHOLE_STEPS = [1, 2, 5].flatMap((n) => [n, n * 10, n * 100, n * 1000, n * 10_000]).sort((a, b) => a - b);

export function Chart({ title, steps, lines, note = "", axis = "training", stacked = false, write = number }: Props) {
  const drawn = lines.filter((line) => hasValues(line.cells));
  const [cursor, setCursor] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const dark = useDark();
  const columns = drawn.map((line) => line.cells);
  const data: uPlot.AlignedData = [steps, ...(stacked ? stack(columns) : columns)];
  const shape = drawn.map((line) => line.label).join("|");

  useLayoutEffect(() => {
    if (!box.current || drawn.length === 0) return;
    const host = box.current;
    const size = () => ({ width: host.clientWidth, height: host.clientHeight });
    const made = new uPlot({ ...size(), ...options(host, drawn, { axis, stacked, onCursor: setCursor }) }, data, host);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize(size()));
    resize.observe(host);
    return () => {
      resize.disconnect();
      made.destroy();
    };
  }, [shape, dark]);

  useEffect(() => plot.current?.setData(data), [steps, lines]);

  const at = cursor !== null && cursor < steps.length ? cursor : null;
  const shown = drawn.map((line) => ({ ...line, value: at === null ? lastValue(line.cells) : line.cells[at] }));
  const summary = shown.map((line) => `${line.label} ${write(line.value)}`).join(", ");
  return (
    <figure class="panel chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="legend">
          {shown.map((line) => (
            <span key={line.label} class={line.reference ? "key reference" : stacked ? "key area" : "key"}>
              <i style={{ color: `var(${line.color})` }} />
              {line.label} <b>{write(line.value)}</b>
            </span>
          ))}
        </span>
        <span class="at">{at === null ? note : `step ${steps[at]}`}</span>
      </figcaption>
      {drawn.length === 0 ? (
        <p class="muted">No values yet.</p>
      ) : (
        <div class="plot" ref={box} role="img" aria-label={`${title} by step; latest: ${summary}`} />
      )}
    </figure>
  );
}

type Options = Omit<uPlot.Options, "width" | "height">;

interface Look {
  axis: string;
  stacked: boolean;
  onCursor: (index: number | null) => void;
}

function options(host: HTMLElement, lines: Line[], { axis, stacked, onCursor }: Look): Options {
  const css = getComputedStyle(host);
  const color = (name: string) => css.getPropertyValue(name).trim();
  const look = {
    stroke: color("--muted"),
    grid: { stroke: color("--grid"), width: 1 },
    ticks: { show: false },
    font: `11px ${css.fontFamily}`,
  };
  return {
    legend: { show: false },
    cursor: { sync: { key: axis }, drag: { x: false, y: false }, points: stacked ? { show: false } : { size: 7 }, y: false },
    scales: stacked
      ? { x: { time: false, range: (_, first, last) => [first - 0.5, last + 0.5] }, y: { range: (_, __, high) => [0, high || 1] } }
      : { x: { time: false }, y: { range: padded } },
    axes: [
      { ...look, incrs: WHOLE_STEPS, grid: { show: false }, size: 26, gap: 4 },
      { ...look, size: 46, gap: 6, values: (_, ticks) => ticks.map((tick) => String(+tick.toPrecision(6))) },
    ],
    series: [{}, ...lines.map((line) => (stacked ? bars : series)(line, color(line.color)))],
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)] },
  };
}

const series = (line: Line, stroke: string): uPlot.Series => ({
  label: line.label,
  stroke,
  width: line.reference ? 1.25 : line.points ? 2 : 1.5,
  spanGaps: false,
  points: line.points
    ? { show: true, size: 6, fill: stroke }
    : { show: true, size: 5, fill: stroke, filter: (plot, at) => alone([...(plot.data[at] ?? [])]) },
  ...(line.reference && { dash: [5, 4] }),
});

const bars = (line: Line, fill: string): uPlot.Series => ({
  label: line.label,
  fill,
  width: 0,
  points: { show: false },
  paths: uPlot.paths.bars!({ size: [0.85, 40] }),
});

/** Room above and below, also around a flat line. */
function padded(_: uPlot, low: number, high: number): [number, number] {
  if (low == null || high == null) return [0, 1];
  const pad = (high - low || Math.abs(high) || 1) * 0.08;
  return [low >= 0 ? Math.max(0, low - pad) : low - pad, high + pad];
}

function useDark(): boolean {
  const query = useRef(matchMedia("(prefers-color-scheme: dark)")).current;
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const listen = () => setDark(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, []);
  return dark;
}
