/** Small pieces that several pages use. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { clock, duration, NONE, words } from "../lib/format";
import type { Poll } from "../lib/poll";
import type { Progress } from "../lib/progress";
import type { Status } from "../lib/types";

export const Badge = ({ status }: { status: Status }) => <span class={`badge ${status}`}>{words(status)}</span>;

export const Notice = ({ level, children }: { level: "warn" | "error"; children: ComponentChildren }) => (
  <div class={`notice ${level}`} role={level === "error" ? "alert" : "status"}>
    {children}
  </div>
);

/** What went wrong with a poll, and how old the figures below it are. */
export function Trouble({ poll }: { poll: Poll<unknown> }) {
  if (!poll.error) return null;
  const away = poll.error.kind === "away";
  return (
    <Notice level={away ? "warn" : "error"}>
      {poll.error.message} {away ? "Trying again." : "Nothing more is fetched."}
      {poll.at !== null && ` What you see is from ${clock(poll.at)}.`}{" "}
      <button class="link" onClick={poll.refresh}>Try now</button>
    </Notice>
  );
}

export const Bar = ({ progress, status }: { progress: Progress | null; status: Status }) => (
  <Track fraction={progress?.fraction ?? 0} status={status} />
);

export function Track({ fraction, status }: { fraction: number; status: Status }) {
  const percent = Math.round(fraction * 100);
  return (
    <span class={`track ${status}`} role="progressbar" aria-valuenow={percent} aria-label="Progress">
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}

export const timeLeft = (progress: Progress | null): string => (progress?.eta === 0 ? "finishing" : duration(progress?.eta));

export const steps = (progress: Progress | null): string =>
  !progress ? NONE : progress.total === null ? `step ${progress.step}` : `${progress.step} / ${progress.total}`;

/** Text with a copy button; browsers give a clipboard only to secure origins. */
export function Copyable({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1200);
  };
  return (
    <span class="copyable">
      <code>{text}</code>
      {isSecureContext && (
        <button class="link" aria-label={`Copy ${text}`} onClick={() => void copy()}>{copied ? "copied" : "copy"}</button>
      )}
    </span>
  );
}

export const Panel = ({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }) => (
  <section class="panel">
    <header>
      <h3>{title}</h3>
      {aside}
    </header>
    {children}
  </section>
);

/** A name that somebody chose: two lines of it, and all of it on demand. */
export const Name = ({ text, note }: { text: string; note?: string }) => (
  <span class="clamp" title={text}>
    {text} {note && <small>{note}</small>}
  </span>
);

interface ChoiceProps<T> {
  label: string;
  tests: Record<string, (entry: T) => boolean>;
  of: readonly T[];
  chosen: string;
  choose: (name: string) => void;
}

/** One of several filters, each with how much it leaves. */
export const Choice = <T,>({ label, tests, of, chosen, choose }: ChoiceProps<T>) => (
  <span class="choice" role="group" aria-label={label}>
    {Object.entries(tests).map(([name, test]) => (
      <button key={name} aria-pressed={name === chosen} onClick={() => choose(name)}>
        {name} <small>{of.filter(test).length}</small>
      </button>
    ))}
  </span>
);

/** Names above their values; null values are left out. */
export const Facts = ({ facts }: { facts: Record<string, ComponentChildren> }) => (
  <dl class="facts">
    {Object.entries(facts).map(
      ([name, value]) =>
        value != null && (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
    )}
  </dl>
);
