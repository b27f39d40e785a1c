/** Longest time for which work starts in a turn of the event loop, in milliseconds. */
export const TURN_MS = 5;

/** Maximum number of waiting tasks that start in a turn. */
export const TURN_STARTS = 16;

/**
 * Shares the turns of the event loop among the work of all callers: calls that start, and pieces of bodies that go on.
 *
 * Node hands over everything that has arrived before it looks at its connections again, and libuv accepts one
 * connection in a turn. Without a bound for all callers together, a connection waits for the work of every connection
 * that was made before it.
 */
export interface LoopPace {
  /** Asks for a part of this turn. Returns whether work may start now; otherwise it waits with {@link turn}. */
  enter(): boolean;
  /**
   * Waits for a later turn. Connections take turns, and the work for each of them starts in order of arrival.
   *
   * @param exchange what the work is for; once it is done, its work takes no part of a turn, and the promise resolves
   */
  turn(exchange?: PacedExchange): Promise<void>;
  /**
   * Notes that a connection was accepted. Others may wait behind it, so until a turn brings none, work starts once in
   * {@link TURN_MS}.
   */
  noteConnection(): void;
}

/** The event loop, as {@link createLoopPace} needs it. */
export interface LoopClock {
  /** Returns the time in milliseconds. */
  now(): number;
  /** Returns the number of this turn. */
  turn(): number;
  /** Calls back at the end of the turn, or from such a callback at the end of the next turn. */
  atEndOfTurn(callback: () => void): void;
}

/** The event loop of this thread. */
export const LOOP: LoopClock = {
  now: () => performance.now(),
  turn: () => performance.nodeTiming.uvMetricsInfo.loopCount,
  atEndOfTurn: (callback) => void setImmediate(callback),
};

/** A request and its answer, which may be done before the work for it starts. */
export interface PacedExchange {
  readonly done: boolean;
  /** Identity of the connection. Default: all work without a connection shares one. */
  readonly connection?: object | undefined;
}

/** The pace of work that must not wait. */
export const UNPACED: LoopPace = { enter: () => true, turn: async () => {}, noteConnection() {} };

interface Waiting {
  readonly exchange: PacedExchange | undefined;
  readonly go: () => void;
}

/** Creates a pace. Default: of the event loop of this thread. */
export function createLoopPace({ now, turn: turnOfLoop, atEndOfTurn }: LoopClock = LOOP): LoopPace {
  const waiting = new FairQueue();
  /** When the latest stretch of work started, and in which turn. */
  let [began, beganIn] = [Number.NEGATIVE_INFINITY, -1];
  /** Whether work has started since the last watched turn, and when the last one with work was over. */
  let [worked, ended] = [false, Number.NEGATIVE_INFINITY];
  const turns = watchTurns(atEndOfTurn, endTurn);

  function isFree(): boolean {
    const time = now();
    if (turns.isCrowded) {
      if (worked || time - ended < TURN_MS) return false;
    } else if (time - began >= TURN_MS) {
      // Watching every turn would cost a short call more than asking for its number once in a while.
      const turn = turnOfLoop();
      if (turn === beganIn) return false;
      [began, beganIn] = [time, turn];
    }
    worked = true;
    return true;
  }

  function endTurn(): boolean {
    if (worked) ended = now();
    worked = false;
    // Each callback is followed by the microtasks of the work that it starts, which then counts for the next.
    for (let starts = Math.min(waiting.size, TURN_STARTS); starts > 0; starts--) atEndOfTurn(start);
    return waiting.size > 0;
  }

  function start(): void {
    while (waiting.first?.exchange?.done) waiting.take()?.go();
    if (waiting.size > 0 && isFree()) waiting.take()?.go();
  }

  return {
    enter: () => waiting.size === 0 && isFree(),
    turn(exchange) {
      turns.watch();
      return new Promise<void>((go) => {
        waiting.add({ exchange, go });
      });
    },
    noteConnection: turns.noteConnection,
  };
}

/** The ends of turns, which cost something only while there is a reason to watch them. */
export interface WatchedTurns {
  /** Whether connections were accepted in this turn or in the one before. */
  readonly isCrowded: boolean;
  /** Watches from the end of this turn on. */
  watch(): void;
  /** Notes that a connection was accepted, and watches until a turn brings none. */
  noteConnection(): void;
}

/**
 * Watches the ends of turns.
 *
 * @param onEnd is called at the end of each watched turn, and returns whether to watch the next one in any case
 */
export function watchTurns(atEndOfTurn: LoopClock["atEndOfTurn"], onEnd: () => boolean): WatchedTurns {
  // A plain field: each piece of work asks for it, and a getter costs twice as much.
  const turns = { isCrowded: false, watch, noteConnection };
  /** Whether connections were accepted in this turn. */
  let connected = false;
  let watching = false;

  function watch(): void {
    if (watching) return;
    watching = true;
    atEndOfTurn(endTurn);
  }

  function endTurn(): void {
    [connected, turns.isCrowded] = [false, connected];
    watching = onEnd() || turns.isCrowded;
    if (watching) atEndOfTurn(endTurn);
  }

  function noteConnection(): void {
    [connected, turns.isCrowded] = [true, true];
    watch();
  }

  return turns;
}

/** Identity of the connection for work without one. */
const NO_CONNECTION = {};

/** Waiting work, of which each connection has its share: the first of each come before the second of any. */
class FairQueue {
  size = 0;
  /** The connection whose turn it is comes first. */
  readonly #byConnection = new Map<object, Waiting[]>();

  get first(): Waiting | undefined {
    for (const queue of this.#byConnection.values()) return queue[0];
    return undefined;
  }

  add(work: Waiting): void {
    const connection = work.exchange?.connection ?? NO_CONNECTION;
    const queue = this.#byConnection.get(connection);
    if (queue === undefined) this.#byConnection.set(connection, [work]);
    else queue.push(work);
    this.size++;
  }

  take(): Waiting | undefined {
    for (const [connection, queue] of this.#byConnection) {
      this.#byConnection.delete(connection);
      const work = queue.shift();
      if (queue.length > 0) this.#byConnection.set(connection, queue);
      this.size--;
      return work;
    }
    return undefined;
  }
}
