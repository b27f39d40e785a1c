import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { Logger } from "pino";
import { openCounters } from "../../backends/dir/cache/counters.ts";
import { openCacheDirectory } from "../../backends/dir/cache/disk-slots.ts";
import type { CacheAccess } from "../../backends/dir/cache/join-cache.ts";
import type { RegisteredStore } from "../../backends/dir/cache/upstream.ts";
import type { Databases } from "../../config/configuration.ts";
import { backendKindOf, UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { backoffMs } from "../../runtime/clocks.ts";
import { programFile } from "../../runtime/package-files.ts";
import { listenOn } from "../../server/port/listen.ts";
import type { CacheStart, FromCache, ToCache } from "./cache-thread.ts";

/** The cache of a process, in a thread of its own. */
export interface RunningCache {
  readonly access: CacheAccess;
  close(): Promise<void>;
}

/** Fewest bytes of a secret for encryption. */
const MIN_KEY_BYTES = 32;

/** Least size of a cache, in bytes. */
const MIN_BYTES = 2 ** 20;

/** Interval at which a directory is tried that another process uses, in milliseconds. */
const LOCKED_MS = 1_000;

/** First and longest pause before a thread that has failed starts again, in milliseconds. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;

/** Longest wait for the last blocks to be written, in milliseconds. */
const CLOSE_MS = 5_000;

/**
 * Starts the cache that the options describe.
 *
 * @returns undefined without --cache-dir
 * @throws UsageError if no database is in an S3 bucket, or if the directory or the key cannot be used
 */
export async function startCache(
  options: ServeOptions,
  databases: Databases | undefined,
  log: Logger,
): Promise<RunningCache | undefined> {
  const { cacheDir: directory, cacheBytes: maxBytes, cacheMemoryBytes: memoryBytes, cacheKeyFile } = options;
  if (directory === undefined) return undefined;
  const all = databases === undefined ? [options] : [...databases.byName.values()];
  if (!all.some(isInS3))
    throw new UsageError(
      "--cache-dir has no effect without a root in an S3 bucket (s3://…); the engine offers no place for it with others",
    );
  if (maxBytes < MIN_BYTES) throw new UsageError("--cache-size must be at least 1MiB");
  const key = cacheKeyFile === undefined ? undefined : await readKey(cacheKeyFile);
  await openCacheDirectory(directory).catch((error: Error) => {
    throw new UsageError(`--cache-dir: ${error.message}`);
  });
  const secret = randomBytes(32).toString("base64url");
  const counters = openCounters().buffer;
  const stores: RegisteredStore[] = [];
  const begin = (port: number): CacheStart => ({
    ...{ directory, maxBytes, memoryBytes, key, secret, port, counters, stores },
  });
  let isClosing = false;
  let ownsDirectory = false;
  const reported = new Set<string>();
  const attached = Promise.withResolvers<string | undefined>();
  const ended = Promise.withResolvers<void>();
  let current: Worker | undefined;

  /** Starts a thread; resolves to its port. */
  async function start(port: number): Promise<number> {
    const thread = new Worker(programFile("gateway/cache/cache-thread"), {
      workerData: begin(port),
      name: "cache",
    });
    current = thread;
    const listening = Promise.withResolvers<number>();
    let isListening = false;
    thread.on("message", (message: FromCache) => {
      switch (message.type) {
        case "listening":
          isListening = true;
          return listening.resolve(message.port);
        case "registered":
          return void stores.push(message.store);
        case "attached":
          if (message.failure === undefined) log.info({ directory }, "the cache on disk is in use");
          else log.warn({ directory, reason: message.failure }, "the cache on disk cannot be used");
          return attached.resolve(message.failure);
        case "failed":
          return report(message.what, message.message);
        case "closed":
          return ended.resolve();
      }
    });
    thread.on("error", (error: NodeJS.ErrnoException) => {
      if (port !== 0 && error.code === "EADDRINUSE") return endProcess(port, error);
      log.error({ err: error }, "the thread of the cache has failed");
      listening.reject(error);
    });
    thread.once("exit", () => {
      ended.resolve();
      listening.reject(new Error("the thread of the cache has ended"));
      if (isListening && !isClosing) void restart();
    });
    const found = await listening.promise;
    if (ownsDirectory) send({ type: "attach" });
    return found;
  }
  /** Logs the first failure of a kind; the counters have the others. */
  function report(what: "disk" | "bucket", message: string): void {
    if (reported.has(`${what} ${message}`) || reported.size > MAX_REPORTED) return;
    reported.add(`${what} ${message}`);
    const text = what === "disk" ? "the disk of the cache fails" : "a request through the cache failed";
    log.warn({ directory, reason: message }, text);
  }
  /** Ends the process: another program gets what the engine sends to the cache, and the engine keeps the address. */
  function endProcess(port: number, error: Error): void {
    log.fatal({ port, err: error }, "another program has taken the port of the cache; the gateway ends");
    process.exit(1);
  }
  let restarts = 0;
  let startedAt = performance.now();
  /**
   * Starts a thread again that has failed: on the same port, with the same secrets, which the engine keeps. The first time it does not wait, so
   * that the port is free for as short as possible.
   */
  async function restart(): Promise<void> {
    if (performance.now() - startedAt > LONGEST_PAUSE_MS) restarts = 0;
    for (; !isClosing; restarts += 1) {
      if (restarts > 0)
        await sleep(backoffMs(restarts - 1, FIRST_PAUSE_MS, LONGEST_PAUSE_MS), undefined, { ref: false });
      if (isClosing) return;
      startedAt = performance.now();
      const isUp = await start(access.port).then(
        () => true,
        () => false,
      );
      // It must not keep a process alive that has nothing else to do.
      current?.unref();
      if (isUp) {
        restarts += 1;
        return;
      }
    }
  }
  const send = (message: ToCache) => current?.postMessage(message);

  const access = { port: await start(0), secret, counters };
  const unlock = lockDirectory(directory, log, () => {
    ownsDirectory = true;
    send({ type: "attach" });
  });
  const close = async () => {
    isClosing = true;
    send({ type: "close" });
    await Promise.race([ended.promise, sleep(CLOSE_MS, undefined, { ref: false })]);
    await current?.terminate();
    await unlock.release();
  };
  const failure = (await unlock.first) ? await attached.promise : undefined;
  if (failure !== undefined) {
    await close();
    throw new UsageError(`--cache-dir: ${failure}`);
  }
  current?.unref();
  return { access, close };
}

/** Number of different failures that are logged. */
const MAX_REPORTED = 100;

function isInS3({ backend, root }: ServeOptions): boolean {
  return backendKindOf(backend) === "dir" && /^s3:\/\//i.test(root);
}

async function readKey(path: string): Promise<Buffer> {
  const key = await readFile(path).catch((error: Error) => {
    throw new UsageError(`--cache-key-file: ${error.message}`);
  });
  if (key.length < MIN_KEY_BYTES)
    throw new UsageError(`--cache-key-file: ${path} must have at least ${MIN_KEY_BYTES} bytes`);
  return key;
}

/**
 * Keeps other processes off a directory, by a socket in it on which this one listens. While another process has it, it is tried again.
 *
 * @param onLocked called once the directory is this process's
 */
function lockDirectory(directory: string, log: Logger, onLocked: () => void) {
  const path = join(directory, "lance-gateway.lock");
  const stop = new AbortController();
  const server = createServer((socket) => socket.destroy());
  server.unref();
  async function attempt(): Promise<Error | undefined> {
    try {
      await listenOn(server, { path, mode: 0o600 });
      onLocked();
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }
  const first = attempt().then((failure) => {
    if (failure === undefined) return true;
    log.warn(
      { directory, reason: failure.message },
      "the cache is in memory alone until its directory can be locked",
    );
    void again();
    return false;
  });
  async function again(): Promise<void> {
    while (!stop.signal.aborted) {
      await sleep(LOCKED_MS, undefined, { ref: false, signal: stop.signal }).catch(() => {});
      if (!stop.signal.aborted && (await attempt()) === undefined) return;
    }
  }
  return {
    /** Whether the first attempt succeeded. */
    first,
    async release() {
      stop.abort();
      if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
