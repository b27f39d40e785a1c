import { randomBytes } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { open, readdir, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

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

/** Options of {@link openRotatingFile}. */
export interface RotatingFileOptions {
  readonly path: string;
  /** Name of the log in messages, such as `audit log`. */
  readonly name: string;
  /** Size from which on the file is moved away, in bytes. Default: it never is. */
  readonly maxBytes?: number | undefined;
  /** Number of files that are kept beside the newest. */
  readonly keep: number;
  readonly log: Logger;
  /** Interval between looks whether others have moved the file, in milliseconds. Default: 1 s. */
  readonly checkMs?: number;
}

const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;
const OWNER_ONLY = 0o600;

/** Ends the names of files that were moved away: the time, and digits that make the name unique. */
const SUFFIX = /^\.(\d{4})(\d{2})(\d{2}T\d{2})(\d{2})(\d{2})(\d{3}Z)-[0-9a-f]{8}$/;

/**
 * Opens a file for appending, by any number of processes. A file that somebody has moved away is opened again within a
 * second of the next line; a file that has grown too large is renamed, and the oldest renamed ones are deleted.
 *
 * A rename never replaces a file. Two processes that rename at the same time leave a small file more.
 *
 * @throws Error of node:fs if the file cannot be opened.
 */
export async function openRotatingFile(options: RotatingFileOptions): Promise<LineTarget> {
  const { path, name, maxBytes = Number.POSITIVE_INFINITY, keep, log, checkMs = 1_000 } = options;
  let handle = await open(path, APPEND, OWNER_ONLY);
  let own = await handle.stat();
  let checkedAt = performance.now();
  /** Bytes of the file at the last look, and those written since. */
  let size = own.size;
  let isStuck = false;

  async function reopen(): Promise<void> {
    const next = await open(path, APPEND, OWNER_ONLY);
    const old = handle;
    handle = next;
    own = await next.stat();
    size = own.size;
    await old.close();
  }
  async function moveAway(): Promise<void> {
    try {
      await rename(path, `${path}${suffixAfter((await movedFiles(path)).at(-1))}`);
      await reopen();
      await prune(path, keep);
      isStuck = false;
    } catch (error) {
      if (!isStuck) log.error({ err: error }, `the ${name} grows on, because it cannot be rotated`);
      isStuck = true;
    }
  }
  return {
    async prepare(bytes) {
      const now = performance.now();
      if (size + bytes <= maxBytes && now - checkedAt < checkMs) return;
      if (isStuck && now - checkedAt < checkMs) return;
      checkedAt = now;
      const found = await statOf(path);
      if (found === undefined || found.ino !== own.ino || found.dev !== own.dev) return reopen();
      size = found.size;
      if (found.isFile() && size > 0 && size + bytes > maxBytes) await moveAway();
    },
    async write(bytes, offset) {
      const { bytesWritten } = await handle.write(bytes, offset);
      size += bytesWritten;
      return bytesWritten;
    },
    close: () => handle.close(),
  };
}

async function statOf(path: string): Promise<Stats | undefined> {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

/** Returns the ends of the names of the files that were moved away, the oldest first. */
async function movedFiles(path: string): Promise<string[]> {
  const name = basename(path);
  const names = (await readdir(dirname(path))).filter((each) => each.startsWith(name));
  return names
    .map((each) => each.slice(name.length))
    .filter((end) => SUFFIX.test(end))
    .sort();
}

/**
 * Returns a name that no other file has, after that of the newest one: a file that was moved away after the clock was set back would
 * otherwise count as the oldest, and be deleted.
 */
function suffixAfter(newest = ""): string {
  const at = Math.max(Date.now(), timeIn(newest) + 1);
  const time = new Date(at).toISOString().replaceAll(/[-:.]/g, "");
  return `.${time}-${randomBytes(4).toString("hex")}`;
}

function timeIn(suffix: string): number {
  return Date.parse(suffix.replace(SUFFIX, "$1-$2-$3:$4:$5.$6")) || 0;
}

async function prune(path: string, keep: number): Promise<void> {
  const moved = await movedFiles(path);
  for (const old of moved.slice(0, Math.max(0, moved.length - keep))) {
    // Another process may have been faster.
    await unlink(`${path}${old}`).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  }
}
