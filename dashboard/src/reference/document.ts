/** The parts of an OpenAPI 3.1 document that the reference page shows. */

export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  format?: string;
  additionalProperties?: boolean | Schema;
  [bound: string]: unknown;
}

export interface Media {
  schema?: Schema;
  example?: unknown;
}

export interface Answer {
  $ref?: string;
  description?: string;
  content?: Record<string, Media>;
}

export interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

export interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, Answer>;
}

export interface OpenApi {
  info: { title: string; version: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, Answer> };
}

/** An operation with where it stands. */
export interface Entry {
  method: string;
  path: string;
  operation: Operation;
}

/** Lists the operations of each tag, in the order of the document; tags without any are left out. */
export function byTag(document: OpenApi): { name: string; description: string; entries: Entry[] }[] {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  return document.tags
    .map((tag) => ({ ...tag, entries: all.filter((entry) => entry.operation.tags.includes(tag.name)) }))
    .filter((tag) => tag.entries.length);
}

/** Whether every word of `query` stands in the entry's method, path, id or summary. */
export function matches({ method, path, operation }: Entry, query: string): boolean {
  const text = `${method} ${path} ${operation.operationId} ${operation.summary}`.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

export const nameOf = (ref: string) => ref.slice(ref.lastIndexOf("/") + 1);

/** Follows the `$ref` of a schema once. */
export function resolve(document: OpenApi, schema: Schema): Schema {
  return schema.$ref ? (document.components.schemas[nameOf(schema.$ref)] ?? {}) : schema;
}

/** Follows the `$ref` of an answer. */
export function answerOf(document: OpenApi, answer: Answer): Answer {
  return answer.$ref ? (document.components.responses[nameOf(answer.$ref)] ?? {}) : answer;
}

const BOUNDS: [string, string][] = [
  ["minimum", "≥ "], ["exclusiveMinimum", "> "], ["maximum", "≤ "], ["exclusiveMaximum", "< "],
  ["minLength", "length ≥ "], ["maxLength", "length ≤ "], ["minItems", "items ≥ "], ["maxItems", "items ≤ "],
];

/** The type of a schema in a few words, such as `integer ≥ 1 | null`. */
export function typeOf(schema: Schema): string {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return [...new Set(choices.map(typeOf))].join(" | ");
  if (schema.type === "array") return `${typeOf(schema.items ?? {})}[]`;
  const name = [schema.type ?? "any"].flat().join(" | ");
  const bounds = BOUNDS.filter(([key]) => schema[key] !== undefined).map(([key, sign]) => sign + String(schema[key]));
  return [schema.format === "binary" ? "bytes" : name, ...bounds].join(" ");
}

/** The named schemas that a value of this schema may be made of, itself included. */
export function parts(document: OpenApi, schema: Schema): Schema[] {
  if (schema.$ref) return parts(document, resolve(document, schema));
  if (schema.items) return parts(document, schema.items);
  const inner = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  return inner ? inner.flatMap((each) => parts(document, each)) : [schema];
}
