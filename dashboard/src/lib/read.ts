/** Careful reading of JSON whose shape nobody promises. */
import type { Data } from "./types";

/** The object, or an empty one for anything else. */
export const record = (value: unknown): Data =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Data) : {};

/** The array, or an empty one for anything else. */
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
