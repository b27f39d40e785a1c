import { type FileHandle, open, readFile, rename } from "node:fs/promises";
import type { Logger } from "pino";
import type { ChangeEvent } from "../namespace/change-event.ts";
import { createLineWriter, type LineTarget } from "../observability/log/lines/line-writer.ts";
import { createTrail } from "../observability/log/lines/trail.ts";

/** An event, and the keys of the receivers that have not got it. */
export interface Entry {
  readonly event: ChangeEvent;
  readonly to: readonly string[];
}

/** Events that are in flight, in a file that a later run of the program reads. */
export interface Journal {
  /** Entries that an earlier run has left, in their order. */
  readonly left: readonly Entry[];
  /** Notes an event; resolves when the system has it, or cannot take it, which the log says. */
  add(entry: Entry): Promise<void>;
  /** Notes that an event needs no further delivery to a receiver. */
  end(id: string, key: string): Promise<void>;
  close(): Promise<void>;
}

/** A line of the file: an entry, or the end of the way to a receiver. */
type Line = Entry | { readonly end: string; readonly to: string };

const NAME = "journal of events";
const OWNER_ONLY = 0o600;

/** Size of the file below which it is not written anew, in bytes. */
const MIN_BYTES = 1024 ** 2;

/**
 * Opens a journal. It appends, and writes the file anew with what is still in flight as soon as the file has doubled.
 *
 * @throws Error of node:fs
 */
export async function openJournal(path: string, log: Logger): Promise<Journal> {
  const alive = await readJournal(path, log);
  const left = [...alive.values()].map(({ event, to }) => ({ event, to: [...to] }));
  const target = await openRewritten(path, () =>
    [...alive.values()].map(({ event, to }) => `${JSON.stringify({ event, to: [...to] })}\n`).join(""),
  );
  const trail = createTrail({
    ...{ name: NAME, writer: createLineWriter(target), required: false },
    ...{ log, onLost() {} },
  });
  const write = (line: Line) => trail.write(JSON.stringify(line));
  return {
    left,
    add(entry) {
      const { event, to } = entry;
      alive.set(event.id, { event, to: new Set(to) });
      return write(entry);
    },
    end(id, key) {
      const to = alive.get(id)?.to;
      to?.delete(key);
      if (to?.size === 0) alive.delete(id);
      return write({ end: id, to: key });
    },
    close: () => trail.close(),
  };
}

interface Alive {
  readonly event: ChangeEvent;
  readonly to: Set<string>;
}

/** Reads what a file says to be in flight. A line that broke off at the end of a run is left out. */
async function readJournal(path: string, log: Logger): Promise<Map<string, Alive>> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  const alive = new Map<string, Alive>();
  let unreadable = 0;
  for (const each of text.split("\n")) {
    if (each === "") continue;
    const line = parsed(each);
    if (line === undefined) unreadable += 1;
    else if ("event" in line) alive.set(line.event.id, { event: line.event, to: new Set(line.to) });
    else {
      const to = alive.get(line.end)?.to;
      to?.delete(line.to);
      if (to?.size === 0) alive.delete(line.end);
    }
  }
  if (unreadable > 0) log.warn({ path, lines: unreadable }, `lines of the ${NAME} cannot be read`);
  return alive;
}

function parsed(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}

/** Opens a file for appending that is written anew, with the given content, at once and whenever it has doubled. */
async function openRewritten(path: string, content: () => string): Promise<LineTarget> {
  let size = 0;
  let limit = 0;

  async function rewrite(): Promise<FileHandle> {
    const fresh = `${path}.new`;
    const handle = await open(fresh, "w", OWNER_ONLY);
    try {
      const text = content();
      await handle.appendFile(text);
      await rename(fresh, path);
      size = Buffer.byteLength(text);
      limit = Math.max(MIN_BYTES, size * 2);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }
  let handle = await rewrite();
  return {
    async prepare(bytes) {
      if (size + bytes <= limit) return;
      const old = handle;
      handle = await rewrite();
      await old.close();
    },
    async write(bytes, offset) {
      const { bytesWritten } = await handle.write(bytes, offset);
      size += bytesWritten;
      return bytesWritten;
    },
    close: () => handle.close(),
  };
}
