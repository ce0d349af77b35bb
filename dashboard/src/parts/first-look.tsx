/** What a job found in its first groups, and the dry run that it was created from. */
import type { FirstLook } from "../lib/dry-run";
import { whole } from "../lib/format";
import { dryRunHref } from "../lib/route";
import { Panel } from "./basics";
import { groupParts } from "./report/scores";
import { Split } from "./split";

export function FirstLookPanel({ look, dryRun }: { look: FirstLook | null; dryRun: string | null }) {
  if (!look && !dryRun) return null;
  return (
    <Panel title="Before the first step" aside={dryRun && <a class="link" href={dryRunHref(dryRun)}>Its dry run</a>}>
      {look && (
        <>
          <p class={`mark ${look.level}`}>{look.message}</p>
          <Split title="Groups" note={look.completions === null ? "" : `${whole(look.completions)} completions`} parts={groupParts(look.groups)} />
        </>
      )}
    </Panel>
  );
}
