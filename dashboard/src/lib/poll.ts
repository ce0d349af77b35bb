/** Repeats a load while the page is looked at; keeps the last good value when one fails. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";

const RETRY_MS = 2_000;
const RETRY_LIMIT_MS = 15_000;

export interface Poll<T> {
  value: T | null;
  /** When `value` arrived (unix seconds). */
  at: number | null;
  error: ApiError | null;
  refresh: () => void;
}

/**
 * Calls `load` now and again after `interval(value)` milliseconds, until that is null. A component
 * that comes to show something else must be mounted anew with another `key`.
 */
export function usePoll<T>(
  load: (signal: AbortSignal) => Promise<T>,
  interval: (value: T) => number | null,
): Poll<T> {
  const [state, setState] = useState<Omit<Poll<T>, "refresh">>({ value: null, at: null, error: null });
  const [round, setRound] = useState(0);
  const latest = useRef({ load, interval });
  latest.current = { load, interval };

  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    let failures = 0;
    const wait = (delay: number | null) => {
      if (delay !== null) timer = setTimeout(() => void tick(), delay);
    };
    const tick = async () => {
      if (document.hidden) {
        const again = { once: true, signal: stop.signal };
        document.addEventListener("visibilitychange", () => void tick(), again);
        return;
      }
      try {
        const value = await latest.current.load(stop.signal);
        if (stop.signal.aborted) return;
        failures = 0;
        setState({ value, at: Date.now() / 1000, error: null });
        wait(latest.current.interval(value));
      } catch (thrown) {
        if (stop.signal.aborted) return;
        const error = thrown instanceof ApiError ? thrown : unreadable(thrown);
        setState((before) => ({ ...before, error }));
        if (error.kind === "away") wait(Math.min(RETRY_MS * 2 ** failures++, RETRY_LIMIT_MS));
      }
    };
    void tick();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [round]);

  return { ...state, refresh: () => setRound((n) => n + 1) };
}

const unreadable = (thrown: unknown): ApiError =>
  new ApiError("refused", `This page cannot read the server's answer (${String(thrown)}).`);

/** The current time (unix seconds), ticking each second while `ticking`. */
export function useNow(ticking = true): number {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    if (!ticking) return;
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, [ticking]);
  return now;
}
