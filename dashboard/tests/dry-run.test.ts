import { expect, test } from "vitest";
import { fakeDryRuns } from "../dev/fake-dry-runs";
import { firstLook, isOver, ROW_FILTERS, scale, type RowResult } from "../src/lib/dry-run";
import { route } from "../src/lib/route";
import { event } from "./build";

const row = (scores: (number | null)[], more: Partial<RowResult> = {}): RowResult => ({
  row: 0, prompt: "", scores, solved: 0, truncated: 0, failed: 0, spread: false, ...more,
});

test("scores are placed between the lowest and the highest, also below zero", () => {
  const place = scale([row([-3, null]), row([1, -1])]);
  expect([place(-3), place(-1), place(1)]).toEqual([0, 0.5, 1]);
});

test("one score throughout is full, or empty at zero and below", () => {
  expect([scale([row([2])])(2), scale([row([0, 0])])(0), scale([row([-1])])(-1), scale([])(0)]).toEqual([1, 0, 0, 0]);
});

test("rows are narrowed by what a reader looks for", () => {
  const rows = [row([1], { spread: true }), row([0], { failed: 1 }), row([0], { truncated: 2 })];
  const left = Object.fromEntries(Object.entries(ROW_FILTERS).map(([name, keep]) => [name, rows.filter(keep).length]));
  expect(left).toEqual({ All: 3, "With spread": 1, "No spread": 2, Failed: 1, "Cut off": 1 });
});

test("the made-up reports add up", () => {
  const reports = fakeDryRuns().flatMap(({ report }) => (report ? [report] : []));
  expect(reports).toHaveLength(3);
  for (const { outcomes, histogram, solved, groups, completions, rows } of reports) {
    expect(outcomes.scores + outcomes.abstentions + outcomes.failures).toBe(completions);
    expect(histogram.reduce((sum, { count }) => sum + count, 0)).toBe(outcomes.scores);
    expect(solved.never + solved.sometimes + solved.always).toBe(rows);
    expect(groups.with_spread + groups.all_solved + groups.all_same + groups.too_few).toBe(groups.total);
  }
});

test("a dry run is over in three states", () => {
  expect(fakeDryRuns().filter(isOver).map(({ status }) => status)).toEqual(["succeeded", "succeeded", "succeeded", "failed", "failed", "cancelled"]);
});

test.each([
  ["", { page: "jobs" }], ["#/jobs", { page: "jobs" }], ["#/jobs/ftjob-1_a", { page: "jobs", id: "ftjob-1_a" }],
  ["#/dry-runs", { page: "dry-runs" }], ["#/dry-runs/dryrun-1", { page: "dry-runs", id: "dryrun-1" }],
  ["#/dry-runs/../x", { page: "jobs" }], ["#/elsewhere/1", { page: "jobs" }],
])("%s leads to %j", (hash, at) => expect(route(hash)).toEqual(at));

test("a job's newest look at its first groups is found among its events", () => {
  const groups = (with_spread: number) => ({ total: 8, with_spread, all_solved: 0, all_same: 8 - with_spread, too_few: 0 });
  const events = [
    event("m", { groups: 3 }, "message"),
    { ...event("b", { groups: groups(2), completions: 64 }, "message"), level: "warn" as const },
    event("a", { groups: groups(7), completions: 64 }, "message"),
    event("0"),
  ];
  expect(firstLook(events)).toEqual({ level: "warn", message: "b", groups: groups(2), completions: 64 });
  expect(firstLook([event("a", { groups: { total: 8, with_spread: NaN } }), event("0")])).toBeNull();
});
