/** Metric events → rows by step → columns that a chart can draw. */
import type { Data, JobEvent } from "./types";

/** All metrics of one step. */
export interface Row {
  step: number;
  data: Data;
}

export interface Curves {
  warmStart: Row[];
  rl: Row[];
}

/** A number to draw, `null` for a gap, `undefined` where the line passes through. */
export type Cell = number | null | undefined;

/** A finite number, or null: NaN, infinities, "NaN" and absent values are gaps, never zeros. */
export const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** Rows of both phases, each sorted by step; the newest event of a step wins key by key. */
export function curves(newestFirst: readonly JobEvent[]): Curves {
  const phases = { warmStart: new Map<number, Row>(), rl: new Map<number, Row>() };
  for (const event of newestFirst.toReversed()) {
    const { data } = event;
    const step = finite(data?.step);
    if (event.type !== "metrics" || !data || step === null) continue;
    const rows = isWarmStart(data) ? phases.warmStart : phases.rl;
    rows.set(step, { step, data: { ...rows.get(step)?.data, ...data } });
  }
  const sorted = (rows: Map<number, Row>) => [...rows.values()].sort((a, b) => a.step - b.step);
  return { warmStart: sorted(phases.warmStart), rl: sorted(phases.rl) };
}

function isWarmStart(data: Data): boolean {
  if (typeof data.phase === "string") return data.phase.startsWith("warm_start");
  return "train_loss" in data && !("train_mean_reward" in data);
}

/** Every step should carry the value: a step without it is a gap. */
export const dense = (rows: readonly Row[], key: string): Cell[] => rows.map((row) => finite(row.data[key]));

/** Only some steps carry the value (evaluations): the line passes the others, NaN stays a gap. */
export const sparse = (rows: readonly Row[], key: string): Cell[] =>
  rows.map((row) => (row.data[key] == null ? undefined : finite(row.data[key])));

export const hasValues = (cells: readonly Cell[]): boolean => cells.some((cell) => typeof cell === "number");

export const lastValue = (cells: readonly Cell[]): number | null =>
  cells.findLast((cell) => typeof cell === "number") ?? null;

/** Where values stand between gaps, or alone: no line leads to them. Steps without a value are no gap. */
export function alone(cells: readonly Cell[]): number[] {
  const told = [...cells.keys()].filter((at) => cells[at] !== undefined);
  const isValue = (at: number | undefined) => at !== undefined && typeof cells[at] === "number";
  return told.filter((at, n) => isValue(at) && !isValue(told[n - 1]) && !isValue(told[n + 1]));
}

/** At most `most` cells, each the mean of its neighbours; a gap stays where all of them are gaps. */
export function thin(cells: readonly Cell[], most: number): Cell[] {
  const width = Math.ceil(cells.length / most);
  if (width <= 1) return [...cells];
  return Array.from({ length: Math.ceil(cells.length / width) }, (_, at) => {
    const part = cells.slice(at * width, (at + 1) * width);
    const values = part.filter((cell) => typeof cell === "number");
    if (values.length > 0) return values.reduce((sum, value) => sum + value, 0) / values.length;
    return part.includes(null) ? null : undefined;
  });
}

/** The unbroken pieces of a line as [index, value]. */
export function pieces(cells: readonly Cell[]): [number, number][][] {
  const found: [number, number][][] = [[]];
  cells.forEach((cell, at) => {
    if (typeof cell === "number") found.at(-1)!.push([at, cell]);
    else if (cell === null) found.push([]);
  });
  return found.filter((piece) => piece.length > 0);
}

/** Each column plus all after it: drawn in turn, they stand on each other. A gap in one is a gap in all. */
export const stack = (columns: readonly Cell[][]): Cell[][] =>
  columns.map((column, from) =>
    column.map((_, at) => {
      const above = columns.slice(from).map((cells) => cells[at]);
      return columns.every((cells) => typeof cells[at] === "number") ? above.reduce<number>((sum, cell) => sum + cell!, 0) : null;
    }),
  );
