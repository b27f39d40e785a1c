import { LanceError } from "../../../../namespace/errors.ts";
import { type CallerQueue, createCallerQueue } from "../../../../runtime/collections.ts";
import { collectInParts } from "../../../../runtime/internals/v8-flags.ts";
import { cancellationOf } from "../../concurrency/wait.ts";

/** The memory that the engine may use to read ahead of the readers of its results, over all databases of a process. */
export interface ReadAhead {
  /**
   * Waits for room for a result. Callers take turns, however many results of one of them wait.
   *
   * @param bytes maximum size of what the engine reads ahead; a larger number than the total counts as the total
   * @param cutOff ends the call of the result in a way that its client notices. Default: the call cannot be ended.
   * @param caller whose result it is. Default: that without a caller
   * @throws LanceError Throttling, when no room is free in time; the signal's reason
   */
  enter(
    bytes: number,
    signal: AbortSignal,
    cutOff?: (error: LanceError) => void,
    caller?: string,
  ): Promise<Place>;
  /**
   * Waits for room for other work of the engine, like {@link ReadAhead.enter}. It may take long, so that all such work together, with that of
   * {@link ReadAhead.tryEnter}, takes half of the total at most, and results go on beside it.
   *
   * @param bytes a larger number than half of the total counts as that half
   */
  enterForWork(bytes: number, signal: AbortSignal): Promise<Place>;
  /**
   * Counts a result that is in memory already, whether there is room or not; others wait until it is gone.
   *
   * @param bytes its size
   * @param cutOff as in {@link ReadAhead.enter}
   */
  count(bytes: number, cutOff?: (error: LanceError) => void): Place;
  /**
   * Takes room for background work, which yields to results and to other work: returns undefined if they wait, or if there is too little.
   *
   * @param bytes as in {@link ReadAhead.enterForWork}
   */
  tryEnter(bytes: number): Place | undefined;
  /** Number of bytes in use. */
  readonly held: number;
}

/** The place that a result takes in the memory. */
export interface Place {
  /** Reports that a piece of a number of bytes is ready: it is the reader's turn. */
  given(bytes: number): void;
  /** Reports that the reader has taken the piece. */
  taken(): void;
  /**
   * Ends the result.
   *
   * @param rest the engine's result if the client left early; its memory is in use until the garbage collector frees it
   */
  leave(rest?: object): void;
}

/** Options of {@link createReadAhead}. */
export interface ReadAheadOptions {
  readonly maxBytes: number;
  /** Maximum time for which a result waits for room, in milliseconds. Default: 20 s. */
  readonly patienceMs?: number;
  /**
   * Maximum time for which a reader may take nothing while another result waits for room, in milliseconds. Default: 5
   * s.
   */
  readonly stallMs?: number;
  /** Interval at which waiting results look for room, in milliseconds. Default: 250. */
  readonly everyMs?: number;
}

/**
 * Rate at which a reader has to take its result while other results wait, in bytes per millisecond. A reader of pieces of a
 * mebibyte that takes each of them just before it counts as stalled gets ten seconds.
 */
const LEAST_RATE = 512;

/** Default size of the memory of a process, in bytes. */
export const DEFAULT_READ_AHEAD_BYTES = 128 * 1024 * 1024;

/** A wish for room. */
interface Demand {
  readonly bytes: number;
  /** Whether it is other work than a result. */
  readonly isWork: boolean;
}

interface Waiting extends Demand {
  /** The time from which on it has waited, by `performance.now`. */
  readonly since: number;
  admit(): void;
}

interface Held extends Demand {
  /** The time at which the reader's turn began, by `performance.now`. */
  since: number | undefined;
  /** Time that {@link LEAST_RATE} allows for the piece of the reader's turn, in milliseconds. */
  allowedMs: number;
  /** Time that the reader has taken beyond that for its latest pieces, in milliseconds; quick ones make up for slow ones. */
  lateMs: number;
  cutOff: ((error: LanceError) => void) | undefined;
}

/**
 * Creates the memory for reading ahead.
 *
 * While a result waits for room, the server collects results whose clients have left, and cuts off readers that take
 * nothing, the longest-stalled first, and then those that take less than {@link LEAST_RATE}.
 */
export function createReadAhead(options: ReadAheadOptions): ReadAhead {
  const { maxBytes, patienceMs = 20_000, stallMs = 5_000, everyMs = 250 } = options;
  const [results, works] = [createCallerQueue<Waiting>(), createCallerQueue<Waiting>()];
  const places = new Set<Held>();
  let [held, work, abandoned] = [0, 0, 0];
  let timer: NodeJS.Timeout | undefined;
  const uncollected = new FinalizationRegistry<Demand>((demand) => {
    abandoned -= demand.bytes;
    free(demand);
  });

  function take({ bytes, isWork }: Demand): void {
    held += bytes;
    if (isWork) work += bytes;
  }

  function free({ bytes, isWork }: Demand): void {
    held -= bytes;
    if (isWork) work -= bytes;
    admitNext();
  }

  function admitNext(): void {
    for (let next = nextInLine(); next !== undefined && fits(next); next = nextInLine()) {
      queueOf(next).shift();
      next.admit();
    }
    if (results.size + works.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  function queueOf({ isWork }: Demand): CallerQueue<Waiting> {
    return isWork ? works : results;
  }

  /** Returns the first that waits for room; results do not wait behind work that waits for other work to end. */
  function nextInLine(): Waiting | undefined {
    const [result, job] = [results.first, works.first];
    if (job === undefined || !isInShare(job)) return result;
    return result === undefined || job.since < result.since ? job : result;
  }

  function isInShare({ bytes, isWork }: Demand): boolean {
    return !isWork || work + bytes <= maxBytes / 2;
  }

  function fits(demand: Demand): boolean {
    return isInShare(demand) && held + demand.bytes <= maxBytes;
  }

  function makeRoom(): void {
    // Only the collector frees the engine's results, and it does not know how much native memory they hold.
    if (abandoned > 0) void collectInParts();
    const now = performance.now();
    const stalled = ({ since }: Held) => (since === undefined ? 0 : now - since);
    const late = (place: Held) => place.lateMs + Math.max(0, stalled(place) - place.allowedMs);
    const by = (time: (place: Held) => number) =>
      [...places]
        .filter((place) => place.cutOff !== undefined && time(place) > stallMs)
        .sort((a, b) => time(b) - time(a));
    let missing = (nextInLine()?.bytes ?? 0) - (maxBytes - held) - abandoned;
    for (const place of new Set([...by(stalled), ...by(late)])) {
      if (missing <= 0) return;
      missing -= place.bytes;
      place.cutOff?.(
        new LanceError("Throttling", "other results are waiting for the memory of an unread result"),
      );
      place.cutOff = undefined;
    }
  }

  function wait(demand: Demand, signal: AbortSignal, caller: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const entry: Waiting = {
        ...demand,
        since: performance.now(),
        admit() {
          take(demand);
          end();
          resolve();
        },
      };
      const giveUp = (error: unknown) => {
        queueOf(demand).remove(entry, caller);
        end();
        admitNext();
        reject(error);
      };
      const onAbort = () => giveUp(cancellationOf(signal));
      const patience = setTimeout(() => giveUp(crowded()), patienceMs);
      const end = () => {
        clearTimeout(patience);
        signal.removeEventListener("abort", onAbort);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      queueOf(demand).push(entry, caller);
      timer ??= setInterval(makeRoom, everyMs);
    });
  }

  function placeOf(demand: Demand, cutOff?: Held["cutOff"]): Place {
    const place: Held = { ...demand, cutOff, since: undefined, allowedMs: 0, lateMs: 0 };
    places.add(place);
    return {
      given(bytes) {
        place.since = performance.now();
        place.allowedMs = bytes / LEAST_RATE;
      },
      taken() {
        if (place.since === undefined) return;
        place.lateMs = Math.max(0, place.lateMs + performance.now() - place.since - place.allowedMs);
        place.since = undefined;
      },
      leave(rest) {
        if (!places.delete(place)) return;
        if (rest === undefined) return free(place);
        abandoned += place.bytes;
        const { bytes, isWork } = place;
        uncollected.register(rest, { bytes, isWork });
      },
    };
  }

  function mayEnter(demand: Demand): boolean {
    return nextInLine() === undefined && (!demand.isWork || works.size === 0) && fits(demand);
  }

  async function enter(
    demand: Demand,
    signal: AbortSignal,
    cutOff?: Held["cutOff"],
    caller = "",
  ): Promise<Place> {
    if (signal.aborted) throw cancellationOf(signal);
    if (mayEnter(demand)) take(demand);
    else await wait(demand, signal, caller);
    return placeOf(demand, cutOff);
  }

  function workOf(bytes: number): Demand {
    return { bytes: Math.min(bytes, maxBytes / 2), isWork: true };
  }

  return {
    get held() {
      return held;
    },
    enter: (bytes, ...rest) => enter({ bytes: Math.min(bytes, maxBytes), isWork: false }, ...rest),
    enterForWork: (bytes, signal) => enter(workOf(bytes), signal),
    count(bytes, cutOff) {
      const demand = { bytes, isWork: false };
      take(demand);
      return placeOf(demand, cutOff);
    },
    tryEnter(bytes) {
      const demand = workOf(bytes);
      if (!mayEnter(demand)) return undefined;
      take(demand);
      return placeOf(demand);
    },
  };
}

function crowded(): LanceError {
  return new LanceError("Throttling", "result memory limit exceeded by the results and changes in flight", {
    headers: { "retry-after": "5" },
  });
}
