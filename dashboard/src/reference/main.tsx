/** The reference page at `/docs`: shows `/openapi.json`, and asks for nothing else. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "../styles.css";
import "./reference.css";
import { byTag, matches, type OpenApi } from "./document";
import { OperationView, Prose } from "./operation";

function Reference() {
  const [document, setDocument] = useState<OpenApi | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [query, setQuery] = useState("");
  useEffect(() => {
    fetch("./openapi.json")
      .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(`the answer was ${answer.status}`))))
      .then(setDocument, (error: Error) => setProblem(error.message));
  }, []);
  useEffect(() => {
    if (document) globalThis.document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, [document]);
  if (problem) return <main><p class="problem">The document cannot be read: {problem}.</p></main>;
  if (!document) return <main><p class="muted">Reading the document…</p></main>;
  const tags = byTag(document)
    .map((tag) => ({ ...tag, entries: tag.entries.filter((entry) => matches(entry, query)) }))
    .filter((tag) => tag.entries.length);
  return (
    <>
      <header class="top">
        <a class="brand" href="./"><img src="./favicon.svg" width="22" height="22" alt="" /> rft API</a>
        <nav>{tags.map((tag) => <a href={`#${tag.name}`}>{tag.name}</a>)}</nav>
      </header>
      <main class="reference">
        <div class="heading">
          <h1>{document.info.title} {document.info.version}</h1>
          <div class="controls">
            <a class="link" href="./openapi.json">openapi.json</a>
            <input
              type="search" aria-label="Search operations" placeholder="Search operations" value={query}
              onInput={(event) => setQuery(event.currentTarget.value)}
            />
          </div>
        </div>
        <Prose text={document.info.description} />
        {!tags.length && <p class="muted">No operation has these words.</p>}
        {tags.map((tag) => (
          <section class="tag" id={tag.name}>
            <h2>{tag.name}</h2>
            <p class="muted">{tag.description}</p>
            {tag.entries.map((entry) => (
              <OperationView key={entry.operation.operationId} document={document} entry={entry} />
            ))}
          </section>
        ))}
      </main>
    </>
  );
}

render(<Reference />, document.getElementById("app")!);
