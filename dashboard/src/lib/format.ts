/** Numbers, durations and times as text; a missing value is an en dash. */

export const NONE = "–";

/** Three significant digits, e.g. 0.742, 12.3, 184, 1.2e-5. */
export function number(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && size < 0.001) return value.toExponential(1);
  if (size < 10) return value.toFixed(3);
  return size < 100 ? value.toFixed(1) : Math.round(value).toLocaleString("en");
}

/** As few digits as say it, e.g. 1, 0.25, −2.5: for limits and axes. */
export const short = (value: number): string => String(+value.toPrecision(3));

/** A whole number with separators, e.g. 12,480. */
export const whole = (value: number | null | undefined): string =>
  value == null || !Number.isFinite(value) ? NONE : Math.round(value).toLocaleString("en");

export const percent = (fraction: number | null | undefined, digits = 1): string =>
  fraction == null || !Number.isFinite(fraction) ? NONE : `${(fraction * 100).toFixed(digits)} %`;

/** The two largest units, e.g. "42 s", "3 min 5 s", "2 h 10 min", "4 d 3 h". */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return NONE;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return pair(Math.floor(s / 60), "min", s % 60, "s");
  const minutes = Math.round(s / 60);
  if (minutes < 24 * 60) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(s / 3600);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** A part of a total in whole percent; neither nothing nor all unless it is. */
export function share(part: number, total: number): string {
  if (!(total > 0)) return NONE;
  if (part > 0 && part / total < 0.005) return "< 1 %";
  return part < total && part / total >= 0.995 ? "> 99 %" : percent(part / total, 0);
}

/** "8 min – 25 min", or one value where both read the same. */
export function span<T>(low: T, high: T, write: (value: T) => string): string {
  const [from, to] = [write(low), write(high)];
  return from === to ? from : `${from} – ${to}`;
}

/** How long one call took, e.g. "20 µs", "4.8 ms", "310 ms", "1.3 s". */
export function latency(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return NONE;
  if (seconds >= 60) return duration(seconds);
  if (seconds < 0.0009995) return `${Math.round(seconds * 1e6)} µs`;
  const [value, unit] = seconds < 0.9995 ? [seconds * 1000, "ms"] : [seconds, "s"];
  return `${value.toFixed(value < 9.95 ? 1 : 0)} ${unit}`;
}

const pair = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`;

/** An estimate's time: its smaller unit would claim too much. */
export function roughly(seconds: number): string {
  const unit = [86_400, 60].find((size) => seconds >= 2 * size) ?? 1;
  return duration(Math.round(seconds / unit) * unit);
}

export const ago = (unix: number, now: number): string =>
  now - unix < 5 ? "just now" : `${duration(coarse(now - unix))} ago`;

/** Drops the smaller unit, so that an age does not flicker each second. */
function coarse(seconds: number): number {
  const unit = [86400, 3600, 60].find((size) => seconds >= size) ?? 1;
  return Math.floor(seconds / unit) * unit;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

export const clock = (unix: number): string => CLOCK.format(unix * 1000);
export const dateTime = (unix: number): string => `${DAY.format(unix * 1000)}, ${clock(unix)}`;

/** "validating_files" → "Validating files". */
export const words = (name: string): string => {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
};
