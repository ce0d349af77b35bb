/** Mounts the page: session, hash routes, and a last resort against a blank page. */
import { Component, render, type ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./styles.css";
import { Api } from "./lib/api";
import { route, type Route } from "./lib/route";
import { DryRunPage } from "./pages/dry-run";
import { DryRunsPage } from "./pages/dry-runs";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { SignIn } from "./pages/signin";

const KEY = "rft.key";

function App() {
  const [session, setSession] = useState({ key: sessionStorage.getItem(KEY), reason: null as string | null });
  const at = useRoute();
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
  const current = (page: Route["page"]) => (at.page !== page ? undefined : at.id ? "true" : "page");
  return (
    <>
      <header class="top">
        <a class="brand" href="#/jobs">
          <img src="./favicon.svg" width="22" height="22" alt="" /> rft
        </a>
        <nav>
          <a href="#/jobs" aria-current={current("jobs")}>Jobs</a>
          <a href="#/dry-runs" aria-current={current("dry-runs")}>Dry runs</a>
        </nav>
        <button class="quiet" onClick={() => signOut(null)}>Sign out</button>
      </header>
      <main><PageOf api={api} at={at} /></main>
    </>
  );
}

function PageOf({ api, at: { page, id } }: { api: Api; at: Route }) {
  if (page === "dry-runs") return id ? <DryRunPage key={id} api={api} id={id} /> : <DryRunsPage api={api} />;
  return id ? <JobPage key={id} api={api} id={id} /> : <JobsPage api={api} />;
}

function useRoute(): Route {
  const [at, setAt] = useState(() => route(location.hash));
  useEffect(() => {
    const listen = () => {
      setAt(route(location.hash));
      scrollTo(0, 0);
    };
    addEventListener("hashchange", listen);
    return () => removeEventListener("hashchange", listen);
  }, []);
  return at;
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
