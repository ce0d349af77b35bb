import { expect, test } from "vitest";
import { alone, curves, dense, finite, lastValue, pieces, sparse, stack, thin } from "../src/lib/series";
import { event } from "./build";

const newestFirst = [
  event("5", { phase: "rl", step: 3, full_valid_mean_reward: "NaN", train_mean_reward: 0.7 }),
  event("4", { phase: "rl", step: 2, train_mean_reward: NaN }),
  event("m", { step: 9, train_mean_reward: 1 }, "message"),
  event("3", { phase: "rl", step: 1, train_mean_reward: 0.6, full_valid_mean_reward: 0.5 }),
  event("2", { phase: "warm_start", step: 2, train_loss: 1, full_valid_mean_reward: 0.4 }),
  event("1", { phase: "warm_start", step: 1, train_loss: 2 }),
  event("0", null),
];

test("metric events become rows by phase and step", () => {
  const { rl, warmStart } = curves(newestFirst);
  expect(rl.map(({ step }) => step)).toEqual([1, 2, 3]);
  expect(dense(warmStart, "train_loss")).toEqual([2, 1]);
});

test("missing and NaN are gaps; a sparse line passes steps without a value", () => {
  const { rl } = curves(newestFirst);
  expect(dense(rl, "train_mean_reward")).toEqual([0.6, null, 0.7]);
  expect(sparse(rl, "full_valid_mean_reward")).toEqual([0.5, undefined, null]);
  expect(lastValue(sparse(rl, "full_valid_mean_reward"))).toBe(0.5);
  expect([finite(Infinity), finite("0.5"), finite(0)]).toEqual([null, null, 0]);
});

test("values that no line reaches are marked", () => {
  expect(alone([1])).toEqual([0]);
  expect(alone([1, 2, null, 3, null, 4, 5])).toEqual([3]);
  expect(alone([1, undefined, 2])).toEqual([]);
  expect(alone([undefined, 1, undefined, null])).toEqual([1]);
  expect(alone([null, undefined])).toEqual([]);
});

test("two events of one step are one row and the newer value wins", () => {
  const rows = curves([event("b", { step: 1, x: 2 }), event("a", { step: 1, x: 1, y: 1 })]).rl;
  expect(rows).toEqual([{ step: 1, data: { step: 1, x: 2, y: 1 } }]);
});

test("without a phase, a loss without a reward is the warm start", () => {
  const { rl, warmStart } = curves([event("b", { step: 1, train_mean_reward: 1 }), event("a", { step: 1, train_loss: 2 })]);
  expect([rl.length, warmStart.length]).toEqual([1, 1]);
});

test("a long line is thinned by means, and keeps its gaps", () => {
  expect(thin([1, 3, null, null, 5, null, undefined, undefined], 4)).toEqual([2, null, 5, undefined]);
  expect(thin([1, 3, null], 3)).toEqual([1, 3, null]);
  expect(thin([], 3)).toEqual([]);
});

test("a line breaks at gaps and passes steps without a value", () => {
  expect(pieces([null, 1, undefined, 2, null, null, 3])).toEqual([[[1, 1], [3, 2]], [[6, 3]]]);
  expect(pieces([null])).toEqual([]);
});

test("stacked columns stand on those after them, and one gap is a gap in all", () => {
  expect(stack([[5, 5, 5], [2, null, 0], [1, 1, 0]])).toEqual([[8, null, 5], [3, null, 0], [1, null, 0]]);
});
