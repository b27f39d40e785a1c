import type { DescribedStatement } from "./statements.ts";

/** How long a statement waits for its DoGet, in milliseconds. */
const KEPT_MS = 60_000;

/** Number of statements that wait, and most characters of one that does. */
const MAX_KEPT = 64;
const MAX_LENGTH = 16 * 1024;

/**
 * Statements between the call that describes them and the DoGet of their ticket, so that their tables are opened once. The ticket has the statement,
 * too: one that is not kept, or is kept by another worker, is described again.
 */
export interface KeptStatements {
  /**
   * Keeps a statement, unless it is long.
   *
   * @param owner key of the caller to whom the ticket belongs
   * @param length of its text, in characters
   */
  keep(ticketId: string, owner: string, statement: DescribedStatement, length: number): void;
  /** Returns the statement of a ticket, once. */
  take(ticketId: string, owner: string): DescribedStatement | undefined;
}

export function createKeptStatements(now: () => number = Date.now): KeptStatements {
  /** The oldest first. */
  const kept = new Map<
    string,
    { readonly owner: string; readonly statement: DescribedStatement; readonly at: number }
  >();

  function evict(): void {
    for (const [id, { at }] of kept) {
      if (kept.size <= MAX_KEPT && now() - at < KEPT_MS) return;
      kept.delete(id);
    }
  }
  return {
    keep(id, owner, statement, length) {
      if (length > MAX_LENGTH) return;
      kept.set(id, { owner, statement, at: now() });
      evict();
    },
    take(id, owner) {
      evict();
      const found = kept.get(id);
      if (found?.owner !== owner) return undefined;
      kept.delete(id);
      return found.statement;
    },
  };
}
