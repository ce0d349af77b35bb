import { expect, test } from "vitest";
import { progress } from "../src/lib/progress";
import { curves } from "../src/lib/series";
import { event, job } from "./build";

const rl = curves([event("a", { phase: "rl", step: 30, total_steps: 60 })]);
const warm = curves([event("a", { phase: "warm_start", step: 6, total_steps: 24 })]);

test("steps and time left of a running job", () => {
  expect(progress(job({ estimated_finish: 1090 }), rl, 1000)).toEqual({ phase: "training", step: 30, total: 60, fraction: 0.5, eta: 90 });
});

test("an estimate that has passed leaves no negative time", () => {
  expect(progress(job({ estimated_finish: 1090 }), rl, 2000)?.eta).toBe(0);
});

test("the warm start has its own count", () => {
  expect(progress(job(), warm, 0)).toMatchObject({ phase: "warm start", fraction: 0.25, eta: null });
});

test("only a running job has a time left, and a succeeded one is complete", () => {
  expect(progress(job({ status: "paused", estimated_finish: 1090 }), rl, 1000)?.eta).toBeNull();
  expect(progress(job({ status: "succeeded" }), rl, 0)?.fraction).toBe(1);
});

test("nothing is known before the first step", () => {
  expect(progress(job(), curves([]), 0)).toBeNull();
});
