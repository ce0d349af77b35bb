/** One job's events, newest first, fetched so that each event crosses the wire once. */
import type { JobEvent, Page } from "./types";

const FIRST_PAGE = 500;
const NEWS_PAGE = 20;

export class EventLog {
  events: JobEvent[] = [];

  /**
   * Reads from the newest event down to the first known one, at most `pages` pages. Known events
   * above that one are gone from the server (a resumed run drops the steps it repeats): here too.
   */
  async refresh(
    fetchEvents: (after: string | null, limit: number) => Promise<Page<JobEvent>>,
    pages = Infinity,
  ): Promise<JobEvent[]> {
    const position = new Map(this.events.map((event, index) => [event.id, index]));
    const size = position.size > 0 ? NEWS_PAGE : FIRST_PAGE;
    const fresh: JobEvent[] = [];
    for (let read = 0, more = true; more && read < pages; read++) {
      const page = await fetchEvents(fresh.at(-1)?.id ?? null, size);
      const met = page.data.findIndex((event) => position.has(event.id));
      if (met >= 0) {
        const known = this.events.slice(position.get(page.data[met]!.id));
        return (this.events = [...fresh, ...page.data.slice(0, met), ...known]);
      }
      fresh.push(...page.data);
      more = page.has_more && page.data.length > 0;
    }
    return (this.events = fresh);
  }
}
