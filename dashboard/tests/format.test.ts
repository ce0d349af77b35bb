import { expect, test } from "vitest";
import { ago, duration, latency, number, percent, roughly, share, short, span, whole, words } from "../src/lib/format";

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

test.each([[2e-5, "20 µs"], [0.00099951, "1.0 ms"], [0.0048, "4.8 ms"], [0.00999, "10 ms"], [0.31, "310 ms"], [0.9996, "1.0 s"], [12.4, "12 s"], [75, "1 min 15 s"], [0, "0 µs"], [null, "–"]])(
  "latency(%s) is %s",
  (seconds, text) => expect(latency(seconds)).toBe(text),
);

test.each([[90, "1 min 30 s"], [512, "9 min"], [5_400, "1 h 30 min"], [400_000, "5 d"]])("roughly(%s) is %s", (seconds, text) => expect(roughly(seconds)).toBe(text));

test("ranges, limits and counts", () => {
  expect([span(60, 120, duration), span(1, 1, whole), short(1), short(-2.345), short(0.1 + 0.2), whole(12_480.4), whole(NaN)]).toEqual(
    ["1 min – 2 min", "1", "1", "-2.35", "0.3", "12,480", "–"],
  );
});

test.each([[1, 4, "25 %"], [1, 5000, "< 1 %"], [4999, 5000, "> 99 %"], [0, 9, "0 %"], [9, 9, "100 %"], [0, 0, "–"]])("share(%s, %s) is %s", (part, total, text) =>
  expect(share(part, total)).toBe(text),
);
