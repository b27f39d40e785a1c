import { type ByteBudget, createByteBudget } from "../byte-budget.ts";

/** Time between two looks at what holds bytes, in milliseconds. */
const CHECK_MS = 100;

/** Options of {@link countStuck}. */
export interface StuckOptions<T> {
  /** Default: no bound. */
  readonly budget?: ByteBudget | undefined;
  /** Returns the bytes that something holds now. */
  bytesOf(holder: T): number;
  /** Whether it holds no bytes any more, and nobody removes it. */
  isGone(holder: T): boolean;
  /** Returns the name of the client that it belongs to. */
  clientOf(holder: T): string;
  /** Ends it, so that its bytes become free. */
  end(holder: T): void;
}

/** Things of clients that may hold bytes in memory. */
export interface StuckBytes<T> {
  add(holder: T): void;
  remove(holder: T): void;
}

/**
 * Counts the bytes that stay in memory because nobody takes them: those that each holder has now and had at the last look. Where the budget has no
 * room for them, those of the client with the most bytes end, the largest first.
 */
export function countStuck<T extends object>(options: StuckOptions<T>): StuckBytes<T> {
  const { budget = createByteBudget(), bytesOf, isGone, clientOf, end } = options;
  // Each count has symbols of its own on the same holder, and no client can write any.
  const [PLACE, BEFORE]: [symbol, symbol] = [Symbol("place"), Symbol("bytes before")];
  const notesOf = (holder: T) => holder as Record<symbol, number | undefined>;
  const holders: T[] = [];
  const hold = budget.open();
  let timer: NodeJS.Timeout | undefined;

  function stuckIn(holder: T): number {
    const notes = notesOf(holder);
    const { [BEFORE]: before = 0 } = notes;
    const bytes = bytesOf(holder);
    notes[BEFORE] = bytes;
    return Math.min(bytes, before);
  }

  function fits(bytes: number): boolean {
    try {
      hold.take(bytes);
      return true;
    } catch {
      return false;
    }
  }

  function check(): void {
    hold.release();
    for (const holder of [...holders]) if (isGone(holder)) remove(holder);
    const stuck = holders
      .map((holder) => ({ holder, bytes: stuckIn(holder) }))
      .filter(({ bytes }) => bytes > 0);
    let all = stuck.reduce((sum, { bytes }) => sum + bytes, 0);
    if (!fits(all)) {
      for (const { holder, bytes } of inOrder(stuck, clientOf)) {
        all -= bytes;
        end(holder);
        if (fits(all)) break;
      }
    }
    timer = holders.length === 0 ? undefined : setTimeout(check, CHECK_MS).unref();
  }

  function remove(holder: T): void {
    const { [PLACE]: place = -1 } = notesOf(holder);
    if (place < 0) return;
    notesOf(holder)[PLACE] = -1;
    const last = holders.pop() as T;
    if (last === holder) return;
    holders[place] = last;
    notesOf(last)[PLACE] = place;
  }

  return {
    add(holder) {
      notesOf(holder)[PLACE] = holders.push(holder) - 1;
      if (timer === undefined) timer = setTimeout(check, CHECK_MS).unref();
    },
    remove,
  };
}

interface Stuck<T> {
  readonly holder: T;
  readonly bytes: number;
}

/** Returns first what belongs to the client with the most bytes: many small things of one client keep no others out. */
function inOrder<T>(stuck: readonly Stuck<T>[], clientOf: (holder: T) => string): Stuck<T>[] {
  const clients = [...Map.groupBy(stuck, ({ holder }) => clientOf(holder)).values()];
  return clients
    .map((own) => ({ own, bytes: own.reduce((sum, { bytes }) => sum + bytes, 0) }))
    .sort((a, b) => b.bytes - a.bytes)
    .flatMap(({ own }) => own.sort((a, b) => b.bytes - a.bytes));
}
