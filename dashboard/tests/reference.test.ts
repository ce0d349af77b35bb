import { expect, test } from "vitest";
import { byTag, matches, parts, typeOf, type Entry, type OpenApi } from "../src/reference/document";

const operation = (operationId: string, tag: string) => ({ operationId, summary: "List the jobs", tags: [tag], responses: {} });
const document: OpenApi = {
  info: { title: "t", version: "1", description: "" },
  tags: [{ name: "Files", description: "" }, { name: "Jobs", description: "" }, { name: "Empty", description: "" }],
  paths: { "/jobs": { get: operation("list_jobs", "Jobs") }, "/files": { post: operation("create_file", "Files") } },
  components: {
    schemas: {
      Job: { type: "object", properties: { id: { type: "string" } } },
      Tree: { type: "object", properties: { child: { $ref: "#/components/schemas/Tree" } } },
    },
    responses: {},
  },
};

test("operations stand under their tags, in the order of the tags", () => {
  const tags = byTag(document);
  expect(tags.map((tag) => tag.name)).toEqual(["Files", "Jobs"]);
  expect(tags[1]?.entries).toMatchObject([{ method: "GET", path: "/jobs" }]);
});

test("a search finds every word in method, path, id or summary", () => {
  const entry: Entry = { method: "GET", path: "/jobs", operation: operation("list_jobs", "Jobs") };
  for (const query of ["", "jobs", "get JOBS", "list"]) expect(matches(entry, query)).toBe(true);
  for (const query of ["post", "jobs files"]) expect(matches(entry, query)).toBe(false);
});

test("a type is told in a few words", () => {
  expect(typeOf({ type: "integer", minimum: 1, maximum: 9 })).toBe("integer ≥ 1 ≤ 9");
  expect(typeOf({ anyOf: [{ $ref: "#/components/schemas/Job" }, { type: "null" }] })).toBe("Job | null");
  expect(typeOf({ type: "array", items: { enum: ["a", "b"] } })).toBe('"a" | "b"[]');
  expect(typeOf({ type: "string", format: "binary" })).toBe("bytes");
  expect(typeOf({ const: "list" })).toBe('"list"');
  expect(typeOf({})).toBe("any");
});

test("the objects inside a schema are found through references, lists and choices", () => {
  const schema = { anyOf: [{ type: "array", items: { $ref: "#/components/schemas/Job" } }, { type: "null" }] };
  expect(parts(document, schema).filter((part) => part.properties)).toEqual([document.components.schemas.Job]);
  expect(parts(document, { $ref: "#/components/schemas/Tree" })).toHaveLength(1);
});
