/** Completions to read, folded away. */
import type { Example } from "../../lib/dry-run";

export function Examples({ examples }: { examples: readonly Example[] }) {
  if (examples.length === 0) return null;
  return (
    <details class="examples">
      <summary>{examples.length === 1 ? "1 example" : `${examples.length} examples`}</summary>
      <ul>
        {examples.map(({ row, text, detail }, at) => (
          <li key={at}>
            <small>Row {row} · {detail}</small>
            <Text text={text} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** What a model wrote, as it is. */
export const Text = ({ text }: { text: string }) => (text === "" ? <pre class="text muted">(empty)</pre> : <pre class="text">{text}</pre>);
