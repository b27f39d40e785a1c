import { setTimeout as sleep } from "node:timers/promises";

/** A place to which bytes are appended. */
export interface LineTarget {
  /** Called before lines of the given number of bytes; it may replace the file behind the target. */
  prepare(bytes: number): Promise<void>;
  /** Appends the bytes from an offset on by a single write; resolves to how many the system has taken. */
  write(bytes: Buffer, offset: number): Promise<number>;
  close(): Promise<void>;
}

/** Appends whole lines to a target. */
export interface LineWriter {
  /**
   * Appends the bytes of lines, each with its end. The caller waits for the end of an append before the next, and
   * leaves the bytes of one that fails as they are, because the system may still read them.
   *
   * @throws Error if the system does not take the lines, or not in time.
   */
  append(lines: Buffer): Promise<void>;
  close(): Promise<void>;
}

const LINE_END = "\n".charCodeAt(0);
const RETRY_MS = 10;

/**
 * Creates a writer of lines.
 *
 * @param timeoutMs time after which a write counts as failed, for example into a pipe that nobody reads
 */
export function createLineWriter(target: LineTarget, timeoutMs = 5_000): LineWriter {
  let isTorn = false;
  let stalled: Promise<void> | undefined;

  async function writeAll(lines: Buffer, signal: AbortSignal): Promise<void> {
    await target.prepare(lines.length);
    // A line that broke off must not take the next one along.
    const bytes = isTorn ? Buffer.concat([Buffer.of(LINE_END), lines]) : lines;
    for (let written = 0; written < bytes.length; ) {
      signal.throwIfAborted();
      const taken = await target.write(bytes, written).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "EAGAIN") return 0;
        throw error;
      });
      written += taken;
      if (written > 0) isTorn = bytes[written - 1] !== LINE_END;
      if (taken === 0) await sleep(RETRY_MS);
    }
  }
  return {
    async append(lines) {
      if (stalled !== undefined) throw new Error("an earlier write has not ended");
      const limit = new AbortController();
      const writing = writeAll(lines, limit.signal);
      const { promise: late, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        const error = new Error(`the system has not taken the lines within ${timeoutMs} ms`);
        limit.abort(error);
        stalled = writing
          .catch(() => {})
          .finally(() => {
            stalled = undefined;
          });
        reject(error);
      }, timeoutMs);
      try {
        await Promise.race([writing, late]);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => target.close(),
  };
}
