import { backoffMs } from "../clocks.ts";
import { statFile } from "./files-in-time.ts";

/** Interval between looks, in milliseconds. */
const LOOK_MS = 1_000;

/** Longest time between two attempts to read what cannot be read, in milliseconds. */
const MAX_RETRY_MS = 60_000;

/** Content that {@link follow} reads, and how it tells changes. */
export interface Followed<T> {
  /** Returns a text that changes when the content does. It must not reject. */
  stamp(): Promise<string>;
  /** Reads the content, and rejects if it is wrong. It is never called twice at the same time. */
  read(): Promise<T>;
  /** Takes over a content that was read after a change. */
  take(content: T): void;
  /** Learns why a changed content cannot be taken over; once for all attempts that fail by the same message. */
  failed(error: unknown): void;
  /** Whether a change is read only once two looks in a row have seen the same stamp. Default: false. */
  readonly waitsForRest?: boolean;
  /** Interval between looks, in milliseconds. Default: 1 s. */
  readonly intervalMs?: number | undefined;
}

/** Looks of a content at its stamp. */
export interface Following {
  /** Looks now, and reads a change without waiting for the rest of it; resolves when the content is taken over or has failed. */
  look(): Promise<void>;
  /** Ends the looks; nothing is taken over after it. */
  close(): void;
}

/** Contents that this thread has opened. */
const opened = new Set<Following>();

/**
 * Reads something, and again after each change.
 *
 * @returns the first content, and a function that ends the looks.
 * @throws every error of the first reading.
 */
export async function openFollowed<T>(followed: Followed<T>): Promise<{ first: T; close: () => void }> {
  // A change during the reading counts as one.
  const before = await followed.stamp();
  const first = await followed.read();
  const following = follow(followed, before);
  opened.add(following);
  return {
    first,
    close() {
      opened.delete(following);
      following.close();
    },
  };
}

/** Looks at everything that {@link openFollowed} has opened in this thread; resolves when all changes are taken over or have failed. */
export async function lookNow(): Promise<void> {
  await Promise.all([...opened].map((following) => following.look()));
}

/**
 * Looks at stamps, and reads after each change. A reading that fails is tried again, after a pause that doubles to a minute: the
 * reason may pass without a change of the stamp, as a lack of file descriptors does.
 *
 * @param known stamp of the content that is in use, from before it was read.
 */
export function follow<T>(followed: Followed<T>, known: string): Following {
  const { intervalMs = LOOK_MS, waitsForRest = false } = followed;
  let [tried, seen] = [known, known];
  /** The attempts since the last change that failed. */
  let failure: { message: string; count: number; looks: number } | undefined;
  let isOver = false;
  let turn: Promise<void> = Promise.resolve();
  let timer = start();

  function start(): NodeJS.Timeout {
    return setTimeout(async () => {
      await inTurn(false);
      if (!isOver) timer = start();
    }, intervalMs).unref();
  }
  function inTurn(isAsked: boolean): Promise<void> {
    turn = turn.then(() => look(isAsked));
    return turn;
  }
  async function look(isAsked: boolean): Promise<void> {
    const now = await followed.stamp();
    const rests = now === seen || !waitsForRest || isAsked;
    seen = now;
    if (now !== tried && rests) {
      tried = now;
      failure = undefined;
      await attempt();
    } else if (failure !== undefined && now === tried) {
      failure.looks += 1;
      const pauseMs = backoffMs(failure.count - 1, intervalMs, Math.max(intervalMs, MAX_RETRY_MS));
      if (isAsked || failure.looks * intervalMs >= pauseMs) await attempt();
    }
  }
  async function attempt(): Promise<void> {
    try {
      const content = await followed.read();
      failure = undefined;
      if (!isOver) followed.take(content);
    } catch (error) {
      const message = String(error);
      if (!isOver && failure?.message !== message) followed.failed(error);
      failure = { message, count: (failure?.count ?? 0) + 1, looks: 0 };
    }
  }
  return {
    look: () => inTurn(true),
    close() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Returns a stamp of files. It looks at the files that the paths lead to now, because editors and Kubernetes replace files by others,
 * which a watch of an inode misses.
 */
export async function stampOfFiles(paths: readonly string[]): Promise<string> {
  const stamps: string[] = [];
  // A single look at a time, because each that hangs holds a thread.
  for (const path of paths)
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = await statFile(path);
      stamps.push([path, dev, ino, size, mtimeNs, ctimeNs].join(" "));
    } catch (error) {
      stamps.push(`${path} ${(error as NodeJS.ErrnoException).code}`);
    }
  return stamps.join("\n");
}
