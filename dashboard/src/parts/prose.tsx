/** A sentence whose `names in backticks` are set as code. */
export const Prose = ({ text }: { text: string }) => (
  <>{text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>
);
