import { useState } from "preact/hooks";
import { Api, ApiError } from "../lib/api";
import { Notice } from "../parts/basics";

/** Asks for an API key and tries it before it is kept; `reason` says why the last session ended. */
export function SignIn({ reason, onAccepted }: { reason: string | null; onAccepted: (key: string) => void }) {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(reason && `You were signed out: ${reason}`);
  document.title = "Sign in · rft";

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await new Api(key.trim()).jobs(1);
      onAccepted(key.trim());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setProblem(error.kind === "away" ? `${error.message} The key was not checked.` : `The key was not accepted: ${error.message}`);
      setBusy(false);
    }
  };

  return (
    <main class="signin">
      <form class="panel" onSubmit={(event) => void submit(event)}>
        <img src="./favicon.svg" width="36" height="36" alt="" />
        <h1>Sign in to rft</h1>
        <label for="key">API key</label>
        <input
          id="key"
          type="password"
          placeholder="sk-rft-…"
          autocomplete="off"
          autofocus
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <button class="primary" disabled={busy || key.trim() === ""}>{busy ? "Checking…" : "Sign in"}</button>
        {problem && <Notice level="error">{problem}</Notice>}
        <small>
          Kept in this tab only and sent to this server alone. Make a key with <code>rft-server keys create</code>.
        </small>
      </form>
    </main>
  );
}
