import { expect, test } from "vitest";
import { ago, duration, number, percent, words } from "../src/lib/format";

test.each([
  [0.74219, "0.742"], [0, "0.000"], [12.34, "12.3"], [1234.5, "1,235"], [0.00001, "1.0e-5"], [-0.5, "-0.500"], [NaN, "–"], [null, "–"],
])("number(%s) is %s", (value, text) => expect(number(value)).toBe(text));

test.each([
  [42.4, "42 s"], [60, "1 min"], [185, "3 min 5 s"], [3600, "1 h"], [7799, "2 h 10 min"], [3599.7, "1 h"], [86_400, "1 d"],
  [86_399, "1 d"], [98_000, "1 d 3 h"], [-3, "0 s"], [null, "–"],
])("duration(%s) is %s", (seconds, text) => expect(duration(seconds)).toBe(text));

test("ages are coarse", () => {
  expect([ago(98, 100), ago(58, 100), ago(0, 7900), ago(0, 200_000)]).toEqual(["just now", "42 s ago", "2 h ago", "2 d ago"]);
});

test("percentages and words", () => {
  expect([percent(0.8391), percent(0.5, 0), percent(null), words("validating_files")]).toEqual(["83.9 %", "50 %", "–", "Validating files"]);
});
