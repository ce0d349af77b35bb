import { afterEach, expect, test, vi } from "vitest";
import { Api, ApiError } from "../src/lib/api";

const answer = (response: Response | Error) =>
  vi.stubGlobal("fetch", async () => {
    if (response instanceof Error) throw response;
    return response;
  });
const failure = async (api: Api): Promise<ApiError> => api.jobs(1).then(() => expect.unreachable(), (error: ApiError) => error);

afterEach(() => vi.unstubAllGlobals());

test("a refused key is reported in the server's words", async () => {
  const refused = vi.fn();
  answer(Response.json({ error: { message: "Incorrect API key." } }, { status: 401 }));
  expect(await failure(new Api("k", refused))).toMatchObject({ kind: "key", message: "Incorrect API key." });
  expect(refused).toHaveBeenCalledExactlyOnceWith("Incorrect API key.");
});

test("an unreachable server and a proxy's page are worth another try", async () => {
  answer(new TypeError("fetch failed"));
  expect(await failure(new Api("k"))).toMatchObject({ kind: "away", message: "The server cannot be reached." });
  answer(new Response("<html>", { status: 502 }));
  expect(await failure(new Api("k"))).toMatchObject({ kind: "away", message: "The server answered 502 and gave no reason." });
  answer(new Response("<html>", { status: 200 }));
  expect((await failure(new Api("k"))).message).toContain("not JSON");
});

test("any other refusal is final", async () => {
  answer(Response.json({ error: { message: "Could not find fine tune: x" } }, { status: 404 }));
  expect(await failure(new Api("k"))).toMatchObject({ kind: "refused", status: 404 });
});

test("the key travels as a bearer token", async () => {
  const fetched = vi.fn(async () => Response.json({ data: [] }));
  vi.stubGlobal("fetch", fetched);
  await new Api("sk-1").events("ftjob-1", "e9", 20, undefined);
  expect(fetched).toHaveBeenCalledWith(
    "/v1/fine_tuning/jobs/ftjob-1/events?limit=20&after=e9",
    expect.objectContaining({ headers: { Authorization: "Bearer sk-1" } }),
  );
});
