import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fakeDryRuns } from "../dev/fake-dry-runs";

const SCHEMA = readFileSync(new URL("../../api/schemas/dry_run_report.py", import.meta.url), "utf8");

/** The fields of a model of the API, as its source names them. */
function fields(model: string): string[] {
  const body = SCHEMA.split(`class ${model}(_Part):`)[1]?.split(/^class /m)[0] ?? "";
  return [...body.matchAll(/^ {4}(\w+):/gm)].map(([, name]) => name!);
}

const report = fakeDryRuns().find((run) => run.report)!.report!;

// The made-up reports have this page's types; so their keys are those that the page reads.
test.each<[string, object]>([
  ["DryRunReport", report],
  ["Verdict", report.verdict],
  ["Outcomes", report.outcomes],
  ["Interval", report.score],
  ["Bin", report.histogram[0]!],
  ["Solved", report.solved],
  ["Groups", report.groups],
  ["Truncation", report.truncation],
  ["Lengths", report.lengths],
  ["FailureGroup", report.failures[0]!],
  ["Example", report.failures[0]!.examples[0]!],
  ["Disagreement", report.disagreement[0]!],
  ["GraderUse", report.graders[0]!],
  ["Latency", report.graders[0]!.latency_s],
  ["Tokens", report.graders.find(({ tokens }) => tokens)!.tokens!],
  ["Suspicious", report.suspicious],
  ["SuspiciousPair", report.suspicious.pairs[0]!],
  ["Hint", report.hints[0]!],
  ["RowResult", report.by_row[0]!],
  ["Estimate", report.estimate],
  ["Plan", report.estimate.plan],
  ["Measured", report.estimate.measured],
  ["Cost", report.estimate.cost!],
  ["JudgeTokens", report.estimate.judge_tokens[0]!],
])("%s has the fields that the API gives it", (model, shown) => expect(Object.keys(shown).sort()).toEqual(fields(model).sort()));
