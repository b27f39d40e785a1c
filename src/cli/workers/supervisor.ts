import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Configuration } from "../../config/configuration.ts";
import { startCache } from "../../gateway/cache/start-cache.ts";
import type { Haste } from "../../gateway/compose.ts";
import { openLiveWebhooks } from "../../gateway/events/open-webhooks.ts";
import type { PreparedChange } from "../../gateway/reload/plan-changes.ts";
import type { RunningGateway } from "../../gateway/start-gateway.ts";
import { createEventTallies } from "../../observability/metrics/background-tallies.ts";
import { createCrewMetrics } from "../../observability/metrics/crew-metrics.ts";
import { createMetrics } from "../../observability/metrics/metrics.ts";
import { backoffMs } from "../../runtime/clocks.ts";
import { shareFiles } from "../../runtime/files/files-in-time.ts";
import { lookNow } from "../../runtime/files/follow.ts";
import { checkIsFree } from "../../server/port/listen.ts";
import { linkCommits, openCommitPorts } from "./commit-ports.ts";
import { createCrewProfiles, createCrewReadiness, createShares, slotNumbers } from "./crew.ts";
import type { ChangeForWorker } from "./messages.ts";
import { clearAll, openSharedMemory, watchBeats } from "./shared-memory.ts";
import { type StartedThread, startWorker, type WorkerThread } from "./worker-thread.ts";

/** Longest pause before a worker is replaced that ends again and again, in milliseconds; the first is none. */
const MAX_PAUSE_MS = 30_000;
const FIRST_PAUSE_MS = 500;
/** Time after which a worker has proved that it can serve, in milliseconds. */
const PROVED_MS = 10_000;
/** Longest time that a blocked worker takes to be interrupted, and then to say that it leaves, in milliseconds. */
const INTERRUPTION_MS = 2_000;
/** Longest time that a worker that was asked to leave waits for the engine, in milliseconds; nobody watches its event loop. */
const LEAVING_MS = 60_000;
/** Longest wait for the threads of a start that has failed, in milliseconds. */
const FAILED_START_MS = 1_000;
/** Longest time that a blocked worker takes to end, in milliseconds. */
const TERMINATION_MS = 10_000;

/**
 * Starts as many workers as the options say: threads that each serve the whole configuration on the same port. The
 * returned gateway is all of them. A worker that ends, or whose event loop is blocked, is replaced.
 *
 * @param onLost called if a blocked worker cannot be ended, so that its part of new connections would hang
 * @throws the errors of a single gateway
 */
export async function startWorkers(
  configuration: Configuration,
  log: Logger,
  onLost: () => void,
): Promise<RunningGateway> {
  const { options } = configuration;
  const size = options.workers;
  const memory = openSharedMemory({ workers: size, databases: 0 });
  shareFiles(memory.quantity(undefined, "files"));
  const allocate = createShares(size);
  // Any worker may get the call for the next page.
  const drawnSecret = randomBytes(32).toString("base64url");
  const withSecret = ({ options: own, ...rest }: Configuration): Configuration => ({
    ...rest,
    options: { ...own, pageTokenSecret: own.pageTokenSecret ?? drawnSecret },
  });
  let current = allocate(withSecret(configuration));
  const crew: (WorkerThread | undefined)[] = Array.from({ length: size }, () => undefined);
  /** The threads of the crew, also those that do not listen yet. */
  const threads: (StartedThread | undefined)[] = [];
  const serving = () => crew.filter((thread) => thread !== undefined);
  const tally = createEventTallies();
  const metrics = createCrewMetrics(serving, tally);
  const readiness = createCrewReadiness(size, serving, (ready) => {
    for (const thread of serving()) thread.send({ type: "readiness", ready });
  });
  const blocked = new Set<number>();
  /** The ends of threads that left to start again. */
  const dismissed = new WeakSet<Promise<void>>();
  const beats = watchBeats(memory, options.workerTimeoutMs, (worker) => void endBlocked(worker));
  const stop = new AbortController();
  const { signal } = stop;

  async function start(worker: number, port: number, isReplacement = false): Promise<WorkerThread> {
    const shares = current;
    const own = { ...shares.configuration, options: { ...shares.configuration.options, port } };
    const first = worker === 0 ? undefined : crew[0];
    // It reads the first one's catalog from its first call on.
    const commitPorts = first === undefined ? [] : openCommitPorts(first, slotNumbers(shares.databases));
    const begin = {
      ...{ ...shares, configuration: own },
      ...{ worker, workers: size, isReplacement, memory: memory.buffer, commitPorts },
      cache: cache?.access,
    };
    const starting = startWorker(begin, (started) => ({
      onReadiness() {
        if (crew[worker] === started) beats.begin(worker, !started.ready);
        readiness.update();
      },
      async onGather(id) {
        const gathered = await metrics.gather().catch((error: unknown) => {
          log.warn({ err: error }, "the metrics of the workers cannot be read");
          return undefined;
        });
        started.send({ type: "gathered", id, metrics: gathered });
      },
      async onAnnounce(id, events) {
        await webhooks.announce(events);
        started.send({ type: "announced", id });
      },
    }));
    threads[worker] = starting;
    if (isReplacement) beats.begin(worker, true);
    const thread = await starting.listening.catch((cause: unknown) => {
      if (signal.aborted || !dismissed.has(starting.gone)) throw cause;
    });
    // The drain has begun, or the configuration or a file has changed, while it started.
    if (thread === undefined || signal.aborted || shares !== current || dismissed.has(starting.gone)) {
      dismiss(starting);
      await starting.ended;
      clear(worker);
      if (!signal.aborted) return start(worker, port, isReplacement);
      throw new Error("the process drains");
    }
    thread.send({ type: "readiness", ready: readiness.ready });
    thread.send({ type: "log level", level: log.level });
    crew[worker] = thread;
    link(worker, first);
    beats.begin(worker, !thread.ready);
    readiness.update();
    return thread;
  }

  /** Connects a worker that has started: the first one with all others, another one with a first that is new by now. */
  function link(started: number, knownFirst: WorkerThread | undefined): void {
    const [first, ...others] = crew;
    if (first === undefined || first === knownFirst) return;
    for (const other of started === 0 ? others : [crew[started]]) {
      if (other !== undefined) linkCommits(first, other, slotNumbers(current.databases));
    }
  }

  /** Replaces a worker whenever it has ended, until the process drains. */
  async function keep(worker: number, first: WorkerThread): Promise<void> {
    const { port } = first.address;
    let failures = 0;
    let former: Promise<void> | undefined;
    for (let thread: WorkerThread | undefined = first; ; ) {
      const since = performance.now();
      const error = await thread?.ended;
      if (thread !== undefined) await forget(worker, thread);
      if (signal.aborted) return;
      const isDismissed = thread !== undefined && dismissed.has(thread.gone);
      if (thread !== undefined && !isDismissed) {
        const reason = blocked.delete(worker) ? "blocked" : "ended";
        log.error({ err: error, worker: worker + 1, reason }, "a worker is replaced");
        metrics.countReplacement(reason);
      }
      failures = isDismissed || performance.now() - since > PROVED_MS ? 0 : failures + 1;
      const pause = failures < 2 ? 0 : backoffMs(failures - 2, FIRST_PAUSE_MS, MAX_PAUSE_MS);
      // It keeps the process alive: while all workers pause, nothing else does.
      await sleep(pause, undefined, { signal }).catch(() => {});
      // A thread that leaves keeps its memory, so that a worker has one of them at most.
      await former;
      former = thread?.gone ?? former;
      if (signal.aborted) return;
      thread = await start(worker, port, true).catch((cause: unknown) => giveUp(worker, cause));
    }
  }
  /** Ends the thread of a worker that cannot start. */
  async function giveUp(worker: number, cause: unknown): Promise<undefined> {
    const thread = threads[worker];
    threads[worker] = undefined;
    beats.end(worker);
    const reason = blocked.delete(worker) ? "blocked" : "failed";
    if (!signal.aborted) log.error({ err: cause, worker: worker + 1, reason }, "a worker cannot be started");
    // Another replacement could wait, too, for what keeps this one from its end.
    if (thread !== undefined) await release(thread);
    clear(worker);
  }
  async function forget(worker: number, thread: WorkerThread): Promise<void> {
    crew[worker] = undefined;
    threads[worker] = undefined;
    beats.end(worker);
    clear(worker);
    readiness.update();
    await metrics.retire(thread).catch(() => {});
  }
  /** Takes back what a worker had of the shared memory. */
  function clear(worker: number): void {
    memory.clear(worker);
    for (const { memory: own } of Object.values(current.databases))
      openSharedMemory({ workers: size, databases: 1 }, own).clear(worker);
    clearAll(current.cells, { worker, workers: size });
  }
  /** Has a worker leave that began by former files: its engine would abort the process if it were terminated. */
  function dismiss(thread: Pick<StartedThread, "gone" | "send">): void {
    dismissed.add(thread.gone);
    thread.send({ type: "leave" });
  }
  /** Has a thread leave, and terminates it if that takes long; resolves when it has ended. */
  async function release(thread: StartedThread): Promise<void> {
    thread.send({ type: "leave" });
    await Promise.race([thread.gone, sleep(LEAVING_MS, undefined, { ref: false })]);
    await thread.terminate();
  }
  async function endBlocked(worker: number): Promise<void> {
    const thread = threads[worker];
    if (thread === undefined) return;
    blocked.add(worker);
    if (memory.unbrokenOf(worker) > 0 && (await leaves(thread))) return;
    const isOver = await Promise.race([
      thread.terminate().then(() => true),
      sleep(TERMINATION_MS, false, { ref: false }),
    ]);
    if (isOver) return;
    if (crew[worker] === undefined && serving().length > 0) {
      log.error(
        { worker: worker + 1 },
        "a worker that is blocked in its start cannot be ended, so the others serve without it",
      );
      return;
    }
    log.fatal({ worker: worker + 1 }, "a blocked worker cannot be ended, so the process ends");
    onLost();
  }
  /** Has a blocked worker leave, because the engine would abort the process if it worked for a thread that is terminated; returns whether it does. */
  async function leaves(thread: StartedThread): Promise<boolean> {
    if (!(await thread.interrupt(INTERRUPTION_MS))) return false;
    const atOnce = thread.ended.then(() => true);
    void release(thread);
    return Promise.race([atOnce, sleep(INTERRUPTION_MS, false, { ref: false })]);
  }
  async function prepare(changed: Configuration): Promise<PreparedChange> {
    const former = current;
    const next = allocate(withSecret(changed), former);
    const asked = serving();
    // A later start would find its mistakes, when nothing can go back.
    if (asked.length === 0) throw new Error("no worker runs that could open what the configuration needs");
    const events = await webhooks.prepare(changed);
    const abort = async () => {
      for (const thread of asked) thread.send({ type: "abort" });
      await events.abort();
    };
    // The first one creates and repairs what the others then find.
    const [first, ...others] = asked;
    const failure =
      (await first?.prepare(next)) ??
      (await Promise.all(others.map((thread) => thread.prepare(next)))).find((each) => each !== undefined);
    if (failure !== undefined) {
      await abort();
      throw failure;
    }
    return {
      commit() {
        // They announce events from their commit on.
        events.commit();
        commit(asked, former, next);
      },
      abort,
    };
  }
  function commit(asked: readonly WorkerThread[], former: ChangeForWorker, next: ChangeForWorker): void {
    current = next;
    const { logLevel } = next.configuration.options;
    if (logLevel !== former.configuration.options.logLevel) log.level = logLevel;
    for (const thread of serving()) {
      if (asked.includes(thread)) thread.send({ type: "commit" });
      // It began by the former configuration while the others prepared.
      else dismiss(thread);
    }
    const known = slotNumbers(former.databases);
    const added = slotNumbers(next.databases).filter((slot) => !known.includes(slot));
    const [first, ...others] = crew;
    for (const other of others)
      if (first !== undefined && other !== undefined) linkCommits(first, other, added);
  }
  async function refresh(): Promise<void> {
    // A worker that starts may have read the files before they changed.
    const starting = threads.flatMap((thread, worker) => (crew[worker] === undefined ? (thread ?? []) : []));
    for (const thread of starting) dismiss(thread);
    const left = starting.map(({ ended }) =>
      Promise.race([ended, sleep(INTERRUPTION_MS, undefined, { ref: false })]),
    );
    await Promise.all([lookNow(), ...serving().map((thread) => thread.refresh()), ...left]);
  }
  function setLogLevel(level: string): void {
    log.level = level;
    for (const thread of serving()) thread.send({ type: "log level", level });
  }
  async function close(haste?: Haste): Promise<boolean> {
    stop.abort();
    for (const [worker, thread] of threads.entries())
      if (thread !== undefined && crew[worker] === undefined) thread.send({ type: "leave" });
    // A worker that is blocked does not end by itself.
    const finished = await Promise.all(serving().map((thread) => thread.close(haste)));
    beats.close();
    await Promise.all([webhooks.close(), cache?.close()]);
    return finished.every(Boolean);
  }

  await checkIsFree(options);
  const webhooks = await openLiveWebhooks(configuration, { log, tally });
  const cache = await startCache(options, configuration.databases, log).catch(async (error: unknown) => {
    await webhooks.close();
    throw error;
  });
  try {
    // The first one creates and repairs what the others then find.
    const first = await start(0, options.port);
    const { port } = first.address;
    const others = Array.from({ length: size - 1 }, (_, index) => start(index + 1, port));
    const started = [first, ...(await Promise.all(others))];
    for (const [worker, thread] of started.entries()) void keep(worker, thread);
    const page = options.noMetrics ? undefined : createMetrics(() => metrics.gather()).page;
    return {
      address: first.address,
      readOnly: first.readOnly,
      get ready() {
        return readiness.ready;
      },
      metrics: page,
      profiles: createCrewProfiles({
        crew,
        pausing: (worker, paused) => (paused ? beats.end(worker) : beats.begin(worker, false)),
      }),
      setLogLevel,
      prepare,
      refresh,
      close,
    };
  } catch (error) {
    stop.abort();
    // They end with the process, which would not end while one of them waits for a file.
    const ends = threads.flatMap((thread) => thread && release(thread));
    await Promise.race([Promise.all(ends), sleep(FAILED_START_MS, undefined, { ref: false })]);
    await Promise.all([webhooks.close(), cache?.close()]);
    throw error;
  }
}
