// A life cycle through the official Node client; LIFE holds what the test prepared, as JSON.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import OpenAI, { toFile } from "openai";

const life = JSON.parse(process.env.LIFE);
const client = new OpenAI({
  baseURL: life.baseURL,
  apiKey: life.apiKey,
  adminAPIKey: life.apiKey, // this client sends it for checkpoint permissions
  maxRetries: 0,
});
const rows = fs.readFileSync(life.rows);
const grader = {
  type: "string_check",
  name: "exact",
  operation: "eq",
  input: "{{sample.output_text}}",
  reference: "{{item.answer}}",
};
const method = {
  type: "reinforcement",
  reinforcement: { grader, hyperparameters: { max_steps: 1 } },
};

async function every(pages) {
  const found = [];
  for await (const each of pages) found.push(each);
  return found;
}

async function until(call, condition, what) {
  for (let tries = 0; tries < 600; tries += 1) {
    const result = await call();
    if (condition(result)) return result;
    await sleep(200);
  }
  throw new Error(`waited in vain for ${what}`);
}

test("files", async () => {
  const made = await client.files.create({
    file: fs.createReadStream(life.rows),
    purpose: "fine-tune",
    expires_after: { anchor: "created_at", seconds: 3600 },
  });
  assert.equal(made.expires_at, made.created_at + 3600);
  const ready = await client.files.waitForProcessing(made.id, { pollInterval: 200 });
  assert.equal(ready.status, "processed");
  assert.equal((await client.files.retrieve(made.id)).bytes, rows.length);
  const listed = await every(client.files.list({ purpose: "fine-tune" }));
  assert.ok(listed.some((file) => file.id === made.id));
  const content = await (await client.files.content(made.id)).text();
  assert.equal(content, rows.toString());
  assert.ok((await client.files.delete(made.id)).deleted);
  await assert.rejects(client.files.retrieve(made.id), OpenAI.NotFoundError);
});

test("uploads", async () => {
  const about = { filename: "parts.jsonl", mime_type: "application/jsonl", purpose: "fine-tune" };
  const upload = await client.uploads.create({ ...about, bytes: rows.length });
  const half = rows.length >> 1;
  const parts = await Promise.all(
    [rows.subarray(0, half), rows.subarray(half)].map(async (data) =>
      client.uploads.parts.create(upload.id, { data: await toFile(data, "part") }),
    ),
  );
  const completed = await client.uploads.complete(upload.id, {
    part_ids: parts.map((part) => part.id),
  });
  assert.equal(completed.status, "completed");
  assert.equal(completed.file.bytes, rows.length);
  const left = await client.uploads.create({ ...about, bytes: 3 });
  assert.equal((await client.uploads.cancel(left.id)).status, "cancelled");
});

test("jobs", async () => {
  const finished = await client.fineTuning.jobs.retrieve(life.job);
  assert.equal(finished.fine_tuned_model, life.model);
  const events = await every(client.fineTuning.jobs.listEvents(life.job, { limit: 7 }));
  assert.ok(events.length > 7);
  const checkpoints = await every(client.fineTuning.jobs.checkpoints.list(life.job, { limit: 1 }));
  assert.equal(checkpoints[0].fine_tuned_model_checkpoint, life.model);

  const file = await client.files.create({
    file: await toFile(rows, "rows.jsonl"),
    purpose: "fine-tune",
  });
  const job = await client.fineTuning.jobs.create({
    model: life.base,
    training_file: file.id,
    method,
    metadata: { made: "by node" },
  });
  assert.equal(job.status, "validating_files");
  await until(
    () => client.fineTuning.jobs.retrieve(job.id),
    (now) => now.status !== "validating_files",
    "the validation",
  );
  assert.equal((await client.fineTuning.jobs.pause(job.id)).status, "paused");
  assert.equal((await client.fineTuning.jobs.resume(job.id)).status, "queued");
  const found = await every(
    client.fineTuning.jobs.list({ limit: 1, metadata: { made: "by node" } }),
  );
  assert.ok(found.some((each) => each.id === job.id));
  assert.equal((await client.fineTuning.jobs.cancel(job.id)).status, "cancelled");
  await assert.rejects(client.fineTuning.jobs.cancel(job.id), OpenAI.BadRequestError);
});

test("checkpoint permissions", async () => {
  const { permissions } = client.fineTuning.checkpoints;
  const [given] = await every(permissions.create(life.model, { project_ids: [life.project] }));
  assert.equal(given.project_id, life.project);
  const listed = await every(permissions.list(life.model));
  assert.deepEqual(
    listed.map((each) => each.id),
    [given.id],
  );
  const gone = await permissions.delete(given.id, { fine_tuned_model_checkpoint: life.model });
  assert.ok(gone.deleted);
});

test("graders", async () => {
  const { graders } = client.fineTuning.alpha;
  assert.equal((await graders.validate({ grader })).grader.name, "exact");
  const run = await graders.run({ grader, model_sample: "4", item: { answer: "4" } });
  assert.equal(run.reward, 1);
});

test("chat", async () => {
  const asked = {
    model: life.model,
    messages: [{ role: "user", content: "Name a colour." }],
    max_completion_tokens: 8,
  };
  const seeded = { ...asked, n: 2, seed: 3, temperature: 1, logprobs: true, top_logprobs: 2 };
  const answer = await client.chat.completions.create(seeded);
  const again = await client.chat.completions.create(seeded);
  const texts = (completion) => completion.choices.map((choice) => choice.message.content);
  assert.deepEqual(texts(again), texts(answer));
  const chunks = await every(
    await client.chat.completions.create({
      ...asked,
      stream: true,
      stream_options: { include_usage: true },
    }),
  );
  assert.equal(chunks[0].choices[0].delta.role, "assistant");
  assert.ok(chunks.at(-1).usage.total_tokens > 0);
  const streamed = client.chat.completions.stream({ ...asked, temperature: 0 });
  assert.equal(typeof (await streamed.finalContent()), "string");

  const schema = {
    type: "object",
    properties: { warm: { type: "boolean" } },
    required: ["warm"],
    additionalProperties: false,
  };
  const formed = await client.chat.completions.create({
    ...asked,
    max_completion_tokens: 32,
    response_format: { type: "json_schema", json_schema: { name: "c", strict: true, schema } },
  });
  assert.equal(typeof JSON.parse(formed.choices[0].message.content).warm, "boolean");
  const called = await client.chat.completions.create({
    ...asked,
    max_completion_tokens: 32,
    tools: [{ type: "function", function: { name: "report", parameters: schema } }],
    tool_choice: { type: "function", function: { name: "report" } },
  });
  const [call] = called.choices[0].message.tool_calls;
  assert.equal(typeof JSON.parse(call.function.arguments).warm, "boolean");
});

test("completions", async () => {
  const asked = { model: life.model, prompt: "One two", max_tokens: 4, temperature: 0 };
  const answer = await client.completions.create(asked);
  const chunks = await every(await client.completions.create({ ...asked, stream: true }));
  const text = chunks.map((chunk) => chunk.choices[0].text).join("");
  assert.equal(text, answer.choices[0].text);
});

test("evals", async () => {
  const text = { type: "string" };
  const made = await client.evals.create({
    name: "node",
    data_source_config: {
      type: "custom",
      item_schema: { type: "object", properties: { answer: text }, required: ["answer"] },
      include_sample_schema: true,
    },
    testing_criteria: [grader],
  });
  const content = [1, 2].map((n) => ({
    item: { answer: `${n}` },
    sample: { output_text: "1", choices: [] },
  }));
  const run = await client.evals.runs.create(made.id, {
    name: "as it is",
    data_source: { type: "jsonl", source: { type: "file_content", content } },
  });
  const at = { eval_id: made.id };
  const ended = await until(
    () => client.evals.runs.retrieve(run.id, at),
    (now) => !["queued", "in_progress"].includes(now.status),
    "the eval's run",
  );
  assert.deepEqual([ended.status, ended.result_counts.passed], ["completed", 1]);
  const items = await every(client.evals.runs.outputItems.list(run.id, { ...at, limit: 1 }));
  assert.equal(items.length, 2);
  const one = await client.evals.runs.outputItems.retrieve(items[0].id, { ...at, run_id: run.id });
  assert.equal(one.id, items[0].id);
  assert.ok((await every(client.evals.list({ limit: 1 }))).some((each) => each.id === made.id));
  assert.equal((await every(client.evals.runs.list(made.id))).length, 1);
  assert.ok((await client.evals.runs.delete(run.id, at)).deleted);
  assert.ok((await client.evals.delete(made.id)).deleted);
});

test("models", async () => {
  const names = (await every(client.models.list())).map((model) => model.id);
  for (const name of [life.base, life.model, life.spare]) assert.ok(names.includes(name), name);
  assert.equal((await client.models.retrieve(life.model)).object, "model");
  assert.ok((await client.models.delete(life.spare)).deleted);
  await assert.rejects(
    client.chat.completions.create({
      model: life.spare,
      messages: [{ role: "user", content: "Hi" }],
    }),
    OpenAI.NotFoundError,
  );
  await assert.rejects(client.models.delete(life.base), OpenAI.PermissionDeniedError);
});
