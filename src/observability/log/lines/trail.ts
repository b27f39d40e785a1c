import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { LanceError } from "../../../namespace/errors.ts";
import type { LineWriter } from "./line-writer.ts";

/** Options of {@link createTrail}. */
export interface TrailOptions {
  /** Name of the log in messages, such as `audit log`. */
  readonly name: string;
  readonly writer: LineWriter;
  /** Whether a call fails whose line cannot be written. */
  readonly required: boolean;
  /** How long lines wait for others, in milliseconds. Default: the rest of their turn of the event loop. */
  readonly lingerMs?: number;
  readonly log: Logger;
  /** Counts lines that could not be written. */
  readonly onLost: (lines: number) => void;
}

/** The lines of a log on their way to a file. */
export interface FileTrail {
  requireWritable(): void;
  write(line: string): Promise<void>;
  /** Writes what waits and closes the file. */
  close(): Promise<void>;
}

/** A {@link FileTrail} that also takes lines of which nobody awaits the end. */
export interface LineTrail extends FileTrail {
  note(line: string): void;
}

/** Most bytes that wait for the file: a file that takes nothing must not take the memory of the process. */
const MAX_WAITING = 16 * 1024 ** 2;

/** Number of lines for which no further turn is awaited. */
const ENOUGH = 64;

interface Batch {
  readonly lines: LineBuffer;
  readonly done: Promise<void>;
  readonly settle: (error?: Error) => void;
}

/**
 * Creates the way of lines to a file. Lines of a turn of the event loop, those of the next turns of a busy one, and those that arrive while
 * the file is written go to the system together.
 */
export function createTrail(options: TrailOptions): LineTrail {
  const { name, writer, required, lingerMs = 0, log, onLost } = options;
  let waiting: Batch | undefined;
  /** Takes the lines of the next batch. Default: the system may still read the bytes of the last one. */
  let spare: LineBuffer | undefined;
  let working: Promise<void> | undefined;
  let fault: Error | undefined;
  let lost = 0;
  let closing = false;

  function unwritten(lines: number, error: Error): void {
    onLost(lines);
    lost += lines;
    if (fault === undefined) log.error({ err: error, required }, `the ${name} cannot be written`);
    fault = error;
  }
  function recovered(): void {
    if (fault === undefined) return;
    log.warn({ lost }, `the ${name} can be written again`);
    fault = undefined;
    lost = 0;
  }
  /** Lets more lines come, as long as each turn brings some: a write takes a thread of the pool, which costs as much as many lines. */
  async function pause(): Promise<void> {
    if (lingerMs > 0 && !closing) return sleep(lingerMs);
    for (let known = -1; known < linesWaiting() && known < ENOUGH; ) {
      known = linesWaiting();
      await new Promise(setImmediate);
    }
  }
  const linesWaiting = () => waiting?.lines.lines ?? 0;
  async function drain(): Promise<void> {
    for (await pause(); waiting !== undefined; await pause()) {
      const { lines, settle } = waiting;
      waiting = undefined;
      const error = await writer.append(lines.bytes()).then(recovered, (thrown: Error) => thrown);
      if (error) unwritten(lines.lines, error);
      // A write that has taken too long goes on.
      else {
        lines.clear();
        spare = lines;
      }
      settle(error as Error | undefined);
    }
    working = undefined;
  }
  /** Returns the batch of a line, or the reason why it has none. */
  function enqueue(line: string): Batch | Error {
    if ((waiting?.lines.length ?? 0) + line.length > MAX_WAITING) {
      const error = new Error("too many lines wait for the file");
      unwritten(1, error);
      return error;
    }
    if (waiting === undefined) {
      const { promise: done, resolve, reject } = Promise.withResolvers<void>();
      // Lines without a caller fail for nobody.
      done.catch(() => {});
      waiting = {
        lines: spare ?? new LineBuffer(),
        done,
        settle: (error) => (error === undefined ? resolve() : reject(error)),
      };
      spare = undefined;
    }
    waiting.lines.add(line);
    working ??= drain();
    return waiting;
  }
  return {
    requireWritable() {
      if (required && fault !== undefined) throw unavailable(name, fault);
    },
    async write(line) {
      try {
        const batch = enqueue(line);
        if (batch instanceof Error) throw batch;
        await batch.done;
      } catch (cause) {
        if (required) throw unavailable(name, cause);
      }
    },
    note: (line) => void enqueue(line),
    async close() {
      closing = true;
      await working;
      await writer.close();
    },
  };
}

function unavailable(name: string, cause: unknown): LanceError {
  const headers = { "retry-after": "1" };
  return new LanceError("ServiceUnavailable", `the ${name} cannot be written`, { cause, headers });
}

const FIRST_BYTES = 64 * 1024;

/** Size from which on a buffer is not kept for the next lines, in bytes. */
const LARGE_BYTES = 1024 ** 2;

/** Most bytes of a UTF-16 unit in UTF-8. */
const UNIT_BYTES = 3;

const LINE_END = "\n".charCodeAt(0);

/**
 * Lines that wait, as the bytes that a file gets. Texts that wait would be copied by the garbage collector, joined and
 * encoded into a new buffer for each write.
 */
export class LineBuffer {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;
  #lines = 0;

  /** Number of lines. */
  get lines(): number {
    return this.#lines;
  }

  /** Number of bytes, without the ends of the lines. */
  get length(): number {
    return this.#length - this.#lines;
  }

  /** Adds a line, given without its end. */
  add(line: string): void {
    const needed = this.#length + line.length * UNIT_BYTES + 1;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#length += this.#bytes.write(line, this.#length);
    this.#bytes[this.#length++] = LINE_END;
    this.#lines += 1;
  }

  /** Returns the bytes of all lines; they are valid until the buffer is cleared. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Removes all lines. A buffer that has become large is given back. */
  clear(): void {
    if (this.#bytes.length > LARGE_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
    this.#length = 0;
    this.#lines = 0;
  }
}
