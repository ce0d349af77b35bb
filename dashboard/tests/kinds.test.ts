import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { KINDS, kindOf } from "../src/lib/kinds";

const ROW = /^\| `(\w+)` \| (sample|grader|data|infrastructure) \| `(\w+)` \| (.+) \|$/gm;

test("the kinds are those of docs/graders.md", () => {
  const documented = [...readFileSync(new URL("../../docs/graders.md", import.meta.url), "utf8").matchAll(ROW)].map(([, ...row]) => row);
  const known = Object.entries(KINDS).map(([kind, { blame, flag = kind, meaning }]) => [kind, blame, flag, meaning]);
  expect(known.sort()).toEqual(documented.sort());
  expect(documented.length).toBeGreaterThan(10);
});

test("a kind that nobody knows is just a name", () => {
  expect([kindOf("new_error"), kindOf("constructor"), kindOf("__proto__")]).toEqual([undefined, undefined, undefined]);
});
