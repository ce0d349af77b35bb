/** Mounts the page: session, hash routes, and a last resort against a blank page. */
import { Component, render, type ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./styles.css";
import { Api } from "./lib/api";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { SignIn } from "./pages/signin";

const KEY = "rft.key";

function App() {
  const [session, setSession] = useState({ key: sessionStorage.getItem(KEY), reason: null as string | null });
  const id = useJobId();
  const signIn = (key: string) => {
    sessionStorage.setItem(KEY, key);
    setSession({ key, reason: null });
  };
  const signOut = (reason: string | null) => {
    sessionStorage.removeItem(KEY);
    setSession({ key: null, reason });
  };
  const api = useMemo(() => session.key && new Api(session.key, signOut), [session.key]);
  if (!api) return <SignIn reason={session.reason} onAccepted={signIn} />;
  return (
    <>
      <header class="top">
        <a class="brand" href="#/jobs">
          <img src="./favicon.svg" width="22" height="22" alt="" /> rft
        </a>
        <nav>
          <a href="#/jobs" aria-current={id ? undefined : "page"}>Jobs</a>
        </nav>
        <button class="quiet" onClick={() => signOut(null)}>Sign out</button>
      </header>
      <main>{id ? <JobPage key={id} api={api} id={id} /> : <JobsPage api={api} />}</main>
    </>
  );
}

/** The job of `#/jobs/{id}`; any other hash is the list. */
function useJobId(): string | undefined {
  const read = () => /^#\/jobs\/([\w-]+)$/.exec(location.hash)?.[1];
  const [id, setId] = useState(read);
  useEffect(() => {
    const listen = () => setId(read());
    addEventListener("hashchange", listen);
    return () => removeEventListener("hashchange", listen);
  }, []);
  return id;
}

class Boundary extends Component<{ children: ComponentChildren }, { error: string | null }> {
  override state = { error: null };

  static override getDerivedStateFromError = (error: unknown) => ({ error: String(error) });

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <main>
        <h1>This page cannot be shown</h1>
        <p>It met something it cannot read: {this.state.error}</p>
        <p><button onClick={() => location.reload()}>Reload</button></p>
      </main>
    );
  }
}

render(<Boundary><App /></Boundary>, document.getElementById("app")!);
