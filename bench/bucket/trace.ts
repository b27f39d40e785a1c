import { setTimeout as sleep } from "node:timers/promises";

/** A request to the store. */
export interface LinkRequest {
  /** For example `LIST` or `PUT if absent`. */
  readonly kind: string;
  readonly key: string;
  /** In milliseconds of the link's clock. */
  readonly start: number;
  readonly end: number;
}

/** Requests of a call to the store. */
export interface Trace {
  /** Requests that began before the call was answered. */
  readonly during: readonly LinkRequest[];
  /** Requests that began after the answer, in the background. */
  readonly after: readonly LinkRequest[];
}

/** Time without requests after which the work that follows a call has ended, in milliseconds. */
const QUIET_MS = 100;

/** Takes the requests that a link has recorded since the last time. */
export async function takeRequests(linkPort: number): Promise<LinkRequest[]> {
  const answer = await fetch(`http://127.0.0.1:${linkPort}/-/requests`);
  return (await answer.json()) as LinkRequest[];
}

/** Returns the requests until there have been none for a while. */
async function untilQuiet(linkPort: number): Promise<LinkRequest[]> {
  const seen: LinkRequest[] = [];
  for (;;) {
    await sleep(QUIET_MS);
    const more = await takeRequests(linkPort);
    if (more.length === 0) return seen;
    seen.push(...more);
  }
}

/** Traces a single call that directly follows an equal one, which opens tables and connections. */
export async function traceCall(linkPort: number, call: () => Promise<unknown>): Promise<Trace> {
  await untilQuiet(linkPort);
  await call();
  await takeRequests(linkPort);
  await call();
  const during = await takeRequests(linkPort);
  const open = new Set(during.map(({ start }) => start));
  const after = (await untilQuiet(linkPort)).filter(({ start }) => !open.has(start));
  return { during, after };
}

/** Returns the largest number of requests of which each began after the end of the one before. */
export function depthOf(requests: readonly Pick<LinkRequest, "start" | "end">[]): number {
  let [depth, free] = [0, Number.NEGATIVE_INFINITY];
  for (const { start, end } of requests.toSorted((a, b) => a.end - b.end)) {
    if (start < free) continue;
    depth += 1;
    free = end;
  }
  return depth;
}

/** Counts requests by their kinds, as text: `2 HEAD, 1 LIST`. */
export function kindsOf(requests: readonly Pick<LinkRequest, "kind">[]): string {
  const counts = Map.groupBy(requests, ({ kind }) => kind);
  return [...counts].map(([kind, each]) => `${each.length} ${kind}`).join(", ");
}
