/** One kind of grading failure: its name, OpenAI's flag, who can mend it, and what it looks like. */
import type { ComponentChildren } from "preact";
import { kindOf } from "../lib/kinds";
import { Prose } from "./prose";

interface Props {
  kind: string;
  graders: readonly string[];
  /** One failed completion in the grader's words; else the kind's meaning is shown. */
  detail?: string | undefined;
  /** From the server; for the kinds that this page knows it need not say them. */
  flag?: string;
  meaning?: string;
  blame?: string;
  children?: ComponentChildren;
}

export function FailureKind({ kind, graders, detail, children, ...told }: Props) {
  const { blame, flag = kind, meaning } = { ...kindOf(kind), ...told };
  // The names come last: they may be long, and what is cut must not be who can mend it.
  const facts = [blame && `to blame: ${blame}`, flag !== kind && `OpenAI's flag: ${flag}`, graders.length > 0 && `in ${listed(graders)}`];
  return (
    <div class="kind">
      <code>{kind}</code>
      <p>{detail ?? <Prose text={meaning ?? ""} />}</p>
      <small class="clamp" title={graders.join(", ")}>{facts.filter(Boolean).join(" · ")}</small>
      {children}
    </div>
  );
}

const LISTED = 3;

const listed = (names: readonly string[]): string =>
  names.slice(0, LISTED).join(", ") + (names.length > LISTED ? ` and ${names.length - LISTED} more` : "");
