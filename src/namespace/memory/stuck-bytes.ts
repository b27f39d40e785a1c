import { ITEMS_PER_STEP, inSlices, type Steps } from "../../runtime/pace.ts";
import { type ByteBudget, type ByteHold, createByteBudget } from "./byte-budget.ts";

/** Time between two looks at what holds bytes, in milliseconds. */
const CHECK_MS = 100;

/** Options of {@link countStuck}. */
interface StuckOptions<T> {
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
 * room for them, those of the client with the most bytes end, the largest first. They also end when a client that holds less needs their room.
 *
 * A look takes several turns of the event loop if there are many holders.
 */
export function countStuck<T extends object>(options: StuckOptions<T>): StuckBytes<T> {
  const { budget = createByteBudget(), bytesOf, isGone, clientOf, end } = options;
  // Each count has a symbol of its own on the same holder, and no client can write any.
  const NOTES = Symbol("bytes of the holder");
  const notesOf = (holder: T) => (holder as { [NOTES]?: Notes })[NOTES];
  const holders: T[] = [];
  let timer: NodeJS.Timeout | undefined;

  /** Returns the bytes of a holder that are stuck. */
  function look(holder: T, notes: Notes): number {
    const bytes = bytesOf(holder);
    const stuck = Math.min(bytes, notes.before);
    notes.before = bytes;
    return stuck;
  }

  function takeMore(holder: T, notes: Notes, stuck: number): void {
    if (notes.hold === undefined) {
      notes.hold = budget.open(0, clientOf(holder));
      notes.hold.arrive(undefined, () => end(holder));
    }
    try {
      notes.hold.take(stuck - notes.hold.bytes);
    } catch {
      notes.hold.release();
      end(holder);
    }
  }

  function* check(): Steps<void> {
    /** Holders with more bytes than at the last look, by the number of binary digits. */
    const grown: [holder: T, notes: Notes, stuck: number][][] = [];
    // The place of a removed holder has the last one, which has been seen.
    for (let place = holders.length - 1; place >= 0; place--) {
      if (place % ITEMS_PER_STEP === 0) yield;
      const holder = holders[place];
      const notes = holder && notesOf(holder);
      if (holder === undefined || notes === undefined) continue;
      if (isGone(holder)) {
        remove(holder);
        continue;
      }
      const stuck = look(holder, notes);
      const held = notes.hold?.bytes ?? 0;
      if (stuck === 0) free(notes);
      else if (stuck < held) notes.hold?.release(held - stuck);
      else if (stuck > held) {
        const digits = Math.ceil(Math.log2(stuck + 1));
        grown[digits] ??= [];
        grown[digits].push([holder, notes, stuck]);
      }
    }
    let count = 0;
    for (const each of grown.flat()) {
      if (++count % ITEMS_PER_STEP === 0) yield;
      if (notesOf(each[0]) === each[1]) takeMore(...each);
    }
  }

  async function checkAgain(): Promise<void> {
    await inSlices(check());
    timer = holders.length === 0 ? undefined : setTimeout(checkAgain, CHECK_MS).unref();
  }

  function free(notes: Notes): void {
    notes.hold?.release();
    notes.hold = undefined;
  }

  function remove(holder: T): void {
    const notes = notesOf(holder);
    if (notes === undefined) return;
    free(notes);
    (holder as { [NOTES]?: Notes })[NOTES] = undefined;
    const last = holders.pop() as T;
    if (last === holder) return;
    holders[notes.place] = last;
    (notesOf(last) as Notes).place = notes.place;
  }

  return {
    add(holder) {
      (holder as { [NOTES]?: Notes })[NOTES] = {
        place: holders.push(holder) - 1,
        before: 0,
        hold: undefined,
      };
      if (timer === undefined) timer = setTimeout(checkAgain, CHECK_MS).unref();
    },
    remove,
  };
}

/** The count's notes of a holder. */
interface Notes {
  /** Its place among the holders. */
  place: number;
  /** Its bytes at the last look. */
  before: number;
  /** Its stuck bytes. Default: it has none. */
  hold: ByteHold | undefined;
}
