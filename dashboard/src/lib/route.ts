/** The page that a hash stands for. */
export type Route = { page: "jobs" | "dry-runs"; id?: string };

/** `#/jobs`, `#/jobs/{id}`, `#/dry-runs`, `#/dry-runs/{id}`; any other hash is the list of jobs. */
export function route(hash: string): Route {
  const [, page, id] = /^#\/(jobs|dry-runs)(?:\/([\w-]+))?$/.exec(hash) ?? [];
  return { page: page === "dry-runs" ? page : "jobs", ...(id && { id }) };
}

export const dryRunHref = (id: string): string => `#/dry-runs/${encodeURIComponent(id)}`;
