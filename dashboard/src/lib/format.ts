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

const pair = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`;

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
