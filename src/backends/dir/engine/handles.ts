import { LanceError } from "../../../namespace/errors.ts";
import { createSharedCheck, once } from "../../../runtime/promises.ts";
import { type Changes, createChanges } from "../../../runtime/threads/changes.ts";
import { type SharedQuantity, UNSHARED } from "../../../runtime/threads/sharing.ts";
import { traced } from "../../../runtime/tracing.ts";
import {
  allowStaleness,
  createOverlappingCheck,
  createStaleness,
  type Staleness,
} from "../concurrency/shared-checks.ts";
import { toEngineError } from "./failures/errors.ts";
import type { NativeTable } from "./native/native.ts";
import { createRowWidths, type RowWidths } from "./row-widths.ts";
import { createVersionAnswers, type VersionAnswers } from "./version-answers.ts";
import type { Movement, Watcher } from "./watch.ts";
import type { DeletionFiles } from "./workarounds/deletion-lengths/deletion-files.ts";

/** A handle that is in use; it stays open until it is released. Its answers are as of the acquisition, or later. */
export interface Lease extends VersionAnswers {
  /** The table at its newest version as of the acquisition; other callers may move it further. */
  readonly table: NativeTable;
  /** Widths of the rows of recent results, of any version and branch. */
  readonly widths: RowWidths;
  /** The table's files of deleted rows; those of the newest version have been looked at. */
  readonly deletions: DeletionFiles;
  /**
   * Notes that the table has made a version. The next acquisition then asks the engine only if others have made versions, too.
   *
   * @param begun when the call of the engine began that made it, by the monotonic clock
   * @param keepsSchema whether the version has the schema of the one before. Default: the engine is asked
   */
  noteMade(version: number, begun: number, keepsSchema?: boolean): void;
  release(): void;
}

/** A handle that is used before it is known whether the table has a newer version. */
export interface EarlyLease extends Lease {
  /**
   * Whether the table was at its newest version from the acquisition on, or at one that a read may see by the allowed staleness. If not,
   * nothing that was read may be answered.
   */
  readonly isNewest: Promise<boolean>;
}

/** Open tables of an engine. */
export interface Handles {
  /**
   * Opens a table, or takes its open handle, and moves it to the newest version.
   *
   * @param check called before a location is opened; an open handle means that the location passed, because another
   *   directory in its place is opened again
   * @throws LanceError TableNotFound, if the location has no data; the error of `check`
   */
  acquire(location: string, check?: () => Promise<void>): Promise<Lease>;
  /**
   * Takes the open handle of a table whose last look found nothing new, and looks again meanwhile.
   *
   * @returns undefined for all other tables
   */
  acquireEarly(location: string): EarlyLease | undefined;
  /** Number of open tables. */
  readonly open: number;
  /** Closes the handle of a dropped table as soon as it is unused. */
  forget(location: string): void;
  /**
   * Returns how long the longest use of a table's handle takes already, in milliseconds; 0 without one. It counts uses of forgotten handles,
   * and the use of any table by another worker of the process.
   */
  longestUse(location: string): number;
  closeAll(): void;
}

interface Handle {
  readonly table: NativeTable;
  /** Moves to the newest version; the answers are then about that one. */
  readonly refresh: () => Promise<Movement>;
  /** Refreshes the handle, unless its last look is as young as a read demands. */
  readonly refreshForRead: () => Promise<void>;
  /** Whether the last look found nothing new, so that the next one is likely to find nothing either. */
  isCalm: boolean;
  /** Whether an opened table need not be moved to its newest version. */
  readonly isAtFirst: () => Promise<boolean>;
  /** See {@link Lease.noteMade}. */
  readonly noteMade: Lease["noteMade"];
  answers: VersionAnswers;
  readonly widths: RowWidths;
  readonly deletions: DeletionFiles;
  readonly users: Set<symbol>;
  /** When it was last acquired, in milliseconds of `performance.now`. */
  lastUsed: number;
  forgotten: boolean;
}

/** Options of {@link createHandles}. */
export interface HandleOptions {
  /** Maximum number of unused handles that stay open. */
  readonly max: number;
  /** How long an unused handle stays open, in milliseconds. */
  readonly idleMs: number;
  /** Detects whether an open table is still the one at its location. */
  readonly watch: Watcher;
  /** Finds the files of deleted rows of the table at a location. */
  readonly deletionsOf: (location: string) => DeletionFiles;
  /** How old the versions may be that early leases read. Default: not at all. */
  readonly staleness?: Staleness | undefined;
  /** Changes of tables by this process, which every later read sees. */
  readonly changes?: Changes | undefined;
  /** How long the longest use of a handle takes already, in each worker. Default: there is a single worker. */
  readonly useMs?: SharedQuantity | undefined;
}

/** Interval at which workers learn of each other's uses, in milliseconds. */
const PUBLISH_MS = 1_000;
/** How much longer the use of another worker may take than it has published, in milliseconds: its loop may be blocked. */
const PUBLISH_SLACK_MS = 15_000;

/**
 * Keeps handles open, and closes the least recently used ones, and those that were unused for long.
 *
 * @param open opens the table at a location
 */
export function createHandles(
  {
    max,
    idleMs,
    watch,
    deletionsOf,
    staleness = createStaleness(0),
    changes = createChanges(),
    useMs = UNSHARED,
  }: HandleOptions,
  open: (location: string) => Promise<NativeTable>,
): Handles {
  const handles = new Map<string, Promise<Handle>>();
  const ready = new Map<string, Handle>();
  /** The leases, and when each of them began, in milliseconds of `performance.now`; the oldest first. */
  const uses = new Map<symbol, { readonly location: string; readonly since: number }>();

  function closeIfUnused(handle: Handle): void {
    if (handle.forgotten && handle.users.size === 0) handle.table.close();
  }
  function forget(location: string): void {
    const handle = ready.get(location);
    handles.delete(location);
    ready.delete(location);
    if (handle === undefined) return;
    handle.forgotten = true;
    closeIfUnused(handle);
  }
  function evict(): void {
    for (const [location, handle] of ready) {
      if (ready.size <= max) return;
      if (handle.users.size === 0) forget(location);
    }
  }
  // In order of use, so that the first handle that is young enough ends the search.
  function closeIdle(): void {
    const before = performance.now() - idleMs;
    for (const [location, handle] of ready) {
      if (handle.lastUsed > before) return;
      if (handle.users.size === 0) forget(location);
    }
  }
  /** Publishes the longest use of any handle. */
  function publish(): void {
    const [oldest] = uses.values();
    useMs.publish(oldest === undefined ? 0 : performance.now() - oldest.since);
  }
  const timers = [setInterval(closeIdle, idleMs / 4).unref()];
  if (useMs !== UNSHARED) timers.push(setInterval(publish, PUBLISH_MS).unref());

  async function openHandle(location: string, check?: () => Promise<void>): Promise<Handle> {
    await check?.();
    const deletions = deletionsOf(location);
    const [watched] = await Promise.all([watch(location), deletions.look()]);
    const table = await open(location);
    async function refresh(): Promise<Movement> {
      const movement = await watched.moveOn(table);
      if (movement === "moved") await deletions.look();
      if (movement === "moved" || movement === "made")
        handle.answers = createVersionAnswers(table, watched.at);
      handle.isCalm = movement === "same";
      return movement;
    }
    const isNewest = createOverlappingCheck(
      async () => (await watched.isNewest?.()) ?? (await shared()) === "same",
    );
    let seen = 0;
    /** @throws Error if the table has moved */
    async function look(): Promise<void> {
      const count = changes.of(location);
      if (!(await isNewest())) {
        // Reads that may be stale wait for nothing that would move it.
        const movement = staleness.maxMs > 0 ? await shared() : undefined;
        if (movement === "replaced" && ready.get(location) === handle) forget(location);
        throw new Error("the table has another version");
      }
      seen = count;
    }
    function noteMade(version: number, begun: number, keepsSchema = false): void {
      // Changes that run at the same time may tell theirs in another order.
      if (version < (watched.at ?? 0)) return;
      handle.isCalm = false;
      const isNext = keepsSchema && watched.at === version - 1;
      watched.noteMade(version, begun);
      const answers = createVersionAnswers(table, version);
      const { schema } = handle.answers;
      // An object of its own: what is known of a version is remembered by its schema.
      handle.answers = isNext ? { ...answers, schema: once(async () => ({ ...(await schema()) })) } : answers;
    }
    const shared = createSharedCheck(refresh);
    const handle: Handle = {
      table,
      refresh: shared,
      refreshForRead: allowStaleness(look, staleness, () => changes.of(location) !== seen),
      isCalm: false,
      isAtFirst: async () => watched.isAtFirst?.(table) ?? false,
      noteMade,
      answers: createVersionAnswers(table),
      widths: createRowWidths(),
      deletions,
      users: new Set(),
      lastUsed: performance.now(),
      forgotten: false,
    };
    return handle;
  }
  function find(location: string, check?: () => Promise<void>): Promise<Handle> {
    const known = handles.get(location);
    if (known !== undefined) return known;
    const opening = openHandle(location, check);
    handles.set(location, opening);
    opening.then(
      (handle) => {
        if (handles.get(location) !== opening) {
          handle.forgotten = true;
          closeIfUnused(handle);
          return;
        }
        ready.set(location, handle);
      },
      () => {
        if (handles.get(location) === opening) handles.delete(location);
      },
    );
    return opening;
  }
  /** @param onRelease called before the handle may be closed. Default: nothing */
  function lend(location: string, handle: Handle, onRelease?: () => void): Lease {
    const user = Symbol();
    handle.lastUsed = performance.now();
    handle.users.add(user);
    uses.set(user, { location, since: handle.lastUsed });
    // Only after the new handle counts as used; otherwise it would be evicted first.
    evict();
    return createLease(handle, user, () => {
      onRelease?.();
      uses.delete(user);
      closeIfUnused(handle);
      evict();
    });
  }
  async function use(location: string, check?: () => Promise<void>): Promise<Lease | undefined> {
    const isOpen = handles.has(location);
    const handle = await find(location, check);
    if (handle.forgotten && handle.users.size === 0) return undefined;
    // It may have been used for a change.
    const lease = lend(location, handle, () => changes.note(location));
    try {
      // A handle that this call has opened is as new as the call.
      const isNew = !isOpen && (await handle.isAtFirst());
      if (isNew) handle.isCalm = true;
      const movement = isNew ? "same" : await handle.refresh();
      if (movement !== "replaced") {
        if (ready.delete(location)) ready.set(location, handle);
        return lease;
      }
    } catch (error) {
      if (ready.get(location) === handle) forget(location);
      lease.release();
      throw error;
    }
    if (ready.get(location) === handle) forget(location);
    lease.release();
    return undefined;
  }
  return {
    async acquire(location, check) {
      try {
        // A table that was dropped and recreated elsewhere is opened again; a second change is a failure.
        const open = async () => (await use(location, check)) ?? (await use(location, check));
        const lease = await traced("engine open", {}, open);
        if (lease !== undefined) return lease;
      } catch (error) {
        throw toEngineError(error);
      }
      throw new LanceError("ConcurrentModification", "the table was replaced while it was opened");
    },
    acquireEarly(location) {
      const handle = ready.get(location);
      if (handle === undefined || !handle.isCalm) return undefined;
      const { answers } = handle;
      const lease = lend(location, handle);
      if (ready.delete(location)) ready.set(location, handle);
      const isNewest = handle.refreshForRead().then(
        () => handle.answers === answers && !handle.forgotten,
        () => false,
      );
      return { ...lease, ...answers, isNewest };
    },
    get open() {
      return ready.size;
    },
    forget(location) {
      changes.note(location);
      forget(location);
    },
    longestUse(location) {
      const oldest = [...uses.values()].find((each) => each.location === location);
      const own = oldest === undefined ? 0 : performance.now() - oldest.since;
      const others = useMs.largestOther;
      return Math.max(own, others === 0 ? 0 : others + PUBLISH_SLACK_MS);
    },
    closeAll() {
      for (const timer of timers) clearInterval(timer);
      for (const location of [...ready.keys()]) forget(location);
    },
  };
}

function createLease(handle: Handle, user: symbol, onRelease: () => void): Lease {
  return {
    table: handle.table,
    version: () => handle.answers.version(),
    schema: () => handle.answers.schema(),
    rowCount: () => handle.answers.rowCount(),
    textFields: () => handle.answers.textFields(),
    averageRow: () => handle.answers.averageRow(),
    widths: handle.widths,
    deletions: handle.deletions,
    noteMade: handle.noteMade,
    release() {
      if (handle.users.delete(user)) onRelease();
    },
  };
}
