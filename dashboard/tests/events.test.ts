import { beforeEach, expect, test } from "vitest";
import { EventLog } from "../src/lib/events";
import type { JobEvent, Page } from "../src/lib/types";
import { event } from "./build";

let server: JobEvent[];
let asked: (string | null)[];

const fetchPage = async (after: string | null, limit: number): Promise<Page<JobEvent>> => {
  asked.push(after);
  const start = server.findIndex(({ id }) => id === after) + 1;
  return { data: server.slice(start, start + limit), has_more: start + limit < server.length };
};
const write = (from: number, to: number) => {
  for (let n = from; n <= to; n++) server.unshift(event(`e${n}`));
};
const ids = (events: JobEvent[]) => events.map(({ id }) => id);

beforeEach(() => {
  server = [];
  asked = [];
});

test("reads all pages once, then only what is new", async () => {
  write(1, 1200);
  const log = new EventLog();
  expect(ids(await log.refresh(fetchPage))).toEqual(ids(server));
  expect(asked).toEqual([null, "e701", "e201"]);

  write(1201, 1203);
  asked = [];
  expect(ids(await log.refresh(fetchPage))).toEqual(ids(server));
  expect(asked).toEqual([null]);
});

test("news longer than a page is read to the last known event", async () => {
  write(1, 5);
  const log = new EventLog();
  await log.refresh(fetchPage);
  write(6, 50);
  expect(ids(await log.refresh(fetchPage))).toEqual(ids(server));
});

test("events that a resumed run dropped are dropped", async () => {
  write(1, 10);
  const log = new EventLog();
  await log.refresh(fetchPage);
  server.splice(0, 3);
  write(11, 12);
  expect(ids(await log.refresh(fetchPage))).toEqual(["e12", "e11", "e7", "e6", "e5", "e4", "e3", "e2", "e1"]);
});

test("a failed read keeps what was known", async () => {
  write(1, 3);
  const log = new EventLog();
  await log.refresh(fetchPage);
  await expect(log.refresh(() => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
  expect(ids(log.events)).toEqual(["e3", "e2", "e1"]);
});

test("a limit on pages keeps the newest", async () => {
  write(1, 1200);
  expect(await new EventLog().refresh(fetchPage, 2)).toHaveLength(1000);
});
