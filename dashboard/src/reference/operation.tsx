/** One operation: what it takes, what it answers, and how to send it. */
import { useState } from "preact/hooks";
import { answerOf, typeOf, type Entry, type Media, type OpenApi, type Parameter } from "./document";
import { Fields } from "./schema";

export function OperationView({ document, entry }: { document: OpenApi; entry: Entry }) {
  const { method, path, operation } = entry;
  const body = operation.requestBody;
  const [open, setOpen] = useState(location.hash === `#${operation.operationId}`);
  return (
    <details class="operation panel" id={operation.operationId} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class={`method ${method.toLowerCase()}`}>{method}</span> <code>{path}</code>
        <span class="muted">{operation.summary}</span>
      </summary>
      {open && (
        <>
          <Prose text={operation.description ?? ""} />
          <pre>{curl(entry)}</pre>
          {operation.parameters?.length && <Parameters parameters={operation.parameters} />}
          {body && Object.entries(body.content).map(([type, media]) => (
            <Part title={`Body, ${type}`} document={document} media={media} />
          ))}
          <Answers document={document} entry={entry} />
        </>
      )}
    </details>
  );
}

function Parameters({ parameters }: { parameters: Parameter[] }) {
  return (
    <section>
      <h4>Parameters</h4>
      {parameters.map((each) => (
        <div class="field">
          <p>
            <code class="name">{each.name}</code> <code class="type">{typeOf(each.schema ?? {})}</code>
            <small> in {each.in}{each.required && ", required"}</small>
          </p>
          <p class="muted">{each.description}</p>
        </div>
      ))}
    </section>
  );
}

function Answers({ document, entry }: { document: OpenApi; entry: Entry }) {
  const all = Object.entries(entry.operation.responses).map(([status, answer]) => ({
    status, ...answerOf(document, answer),
  }));
  const isGood = ({ status }: { status: string }) => status < "400";
  return (
    <section>
      {all.filter(isGood).map(({ status, description, content }) =>
        Object.entries(content ?? {}).map(([type, media]) => (
          <Part title={`${status}, ${type}`} text={description} document={document} media={media} />
        )),
      )}
      <h4>Errors</h4>
      {all.filter((answer) => !isGood(answer)).map(({ status, description, content }) => (
        <details class="field">
          <summary><code class="name">{status}</code> <span class="muted">{description}</span></summary>
          {Object.values(content ?? {}).map((media) => <Example media={media} />)}
        </details>
      ))}
    </section>
  );
}

function Part({ title, text, document, media }: { title: string; text?: string | undefined; document: OpenApi; media: Media }) {
  return (
    <section>
      <h4>{title}</h4>
      {text && text !== "The answer." && <p class="muted">{text}</p>}
      <div class="beside">
        {media.schema ? <Fields document={document} schema={media.schema} /> : <p class="type">bytes</p>}
        <Example media={media} />
      </div>
    </section>
  );
}

function Example({ media }: { media: Media }) {
  return media.example === undefined ? null : <pre>{JSON.stringify(media.example, null, 2)}</pre>;
}

/** Paragraphs, with what stands between backticks as code. */
export function Prose({ text }: { text: string }) {
  return (
    <>
      {text.split(/\n\s*\n/).map((paragraph) => (
        <p class="prose">{paragraph.split("`").map((part, at) => (at % 2 ? <code>{part}</code> : part))}</p>
      ))}
    </>
  );
}

function curl({ method, path, operation }: Entry): string {
  const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${location.origin}${path}`];
  lines.push('-H "Authorization: Bearer $RFT_API_KEY"');
  for (const [type, media] of Object.entries(operation.requestBody?.content ?? {})) {
    if (type !== "application/json") lines.push(...form(media));
    else lines.push(`-H "Content-Type: ${type}"`, `-d '${JSON.stringify(media.example ?? {})}'`);
  }
  return lines.join(" \\\n  ");
}

function form(media: Media): string[] {
  const example = (media.example ?? {}) as Record<string, unknown>;
  return Object.entries(example).map(([name, value]) => `-F ${name}=${String(value)}`);
}
