import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { DataFragment, Manifest } from "../../../gen/lance/format/table_pb.ts";
import type { BackendFigures } from "../../../namespace/backend-figures.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { startStopwatch } from "../../../runtime/stopwatch.ts";
import { traced } from "../../../runtime/tracing.ts";
import { allowStaleness } from "../concurrency/allow-staleness.ts";
import { createKeyedLocks } from "../concurrency/keyed-locks.ts";
import { createOverlappingCheck } from "../concurrency/overlapping-check.ts";
import { createSharedCheck } from "../concurrency/shared-check.ts";
import { UnsyncedError } from "../format/local/local-errors.ts";
import type { CatalogOptions } from "./catalog-options.ts";
import { createCommitQueue, MAX_GROUPS } from "./commits/commit-queue.ts";
import type { Mutation, Outcome } from "./commits/decide.ts";
import { createForgettable } from "./commits/forgettable.ts";
import { createGroupCommits, type TakeTurn } from "./commits/group-commits.ts";
import { type Exchange, joinExchange } from "./exchange/exchange.ts";
import type { MadeVersion, SharedVersion } from "./exchange/messages.ts";
import { createIntegrity } from "./integrity.ts";
import { StateMismatch } from "./manifest/commit-plan.ts";
import type { Head } from "./manifest/freshness.ts";
import { createHousekeeping } from "./manifest/housekeeping.ts";
import type { ManifestTable } from "./manifest/manifest-table.ts";
import { type Committed, NothingCommitted } from "./manifest/prepared-commit.ts";
import { MAX_ROWS_AT_ONCE } from "./manifest/reader.ts";
import { createSharing } from "./sharing.ts";
import { type CatalogState, createState } from "./state/state.ts";
import { StateChanged } from "./state/steps.ts";
import { factsOf } from "./state/version-facts.ts";
import type { Changes } from "./state/view.ts";

/** Figures of a catalog. */
type CatalogFigures = Pick<BackendFigures, "commits" | "freshnessChecks">;

/** Objects of a base directory, according to the manifest. */
export interface Catalog {
  /**
   * Returns the state with every commit that finished before this call, in any process. With an allowed staleness,
   * commits of other processes may be missing for that long.
   *
   * @throws LanceError ServiceUnavailable while versions are missing that were seen before, or cannot be read
   */
  read(): Promise<CatalogState>;
  /**
   * Returns the state in memory without a check; commits of other processes may be missing. Work that starts from it must
   * be checked against {@link Catalog.read}, or be part of a mutation.
   */
  known(): CatalogState;
  /**
   * Returns the properties of the root, which has no row: the metadata of the manifest table. They are as fresh as
   * {@link read}.
   */
  rootProperties(): Promise<Readonly<Record<string, string>>>;
  /** Counts since the start. */
  readonly figures: CatalogFigures;
  /**
   * Commits a change.
   *
   * The change is on the disk when this returns.
   *
   * @throws LanceError the error of the mutation; ConcurrentModification if other processes won every attempt;
   *   Throttling if too many mutations wait; ServiceUnavailable if the storage fails, in which case it may be committed
   *   or not.
   */
  mutate<T>(mutation: Mutation<T>): Promise<T>;
  /**
   * Removes the verdict of a change with the next commit. Callers use it after removing the change's note, when nothing
   * can ask for the verdict any more.
   */
  forget(changeId: string): void;
  close(): Promise<void>;
}

/**
 * Duration in milliseconds after which a commit checks {@link ManifestTable.isCurrent}: so many other commits may have
 * followed that the previous version has been pruned.
 */
const SURE_WITHIN_MS = 5_000;

/** The warning when the known versions are gone and others have their numbers. */
const REPLACED =
  "the catalog was replaced by another one, as after a restore from a backup, and is read again";

/** Opens the catalog of a manifest table. */
export function createCatalog(
  manifest: ManifestTable,
  log: Logger,
  {
    maxStalenessMs = 0,
    maxWaiting = 10_000,
    maxRetries = 20,
    maintenance = true,
    newestSeen,
    inTurn = oneAtATime(),
    workers,
  }: CatalogOptions = {},
): Catalog {
  const sharing = createSharing({
    manifest,
    isFirst: workers?.isFirst ?? false,
    held: () => (isSound && version > 0 ? { version, state } : undefined),
    refresh: () => refresh(),
    ask: async () => exchange?.share(),
  });
  let state = createState([], sharing.newMemory());
  let version = 0;
  let generation = 0;
  /** The newest version that this process has committed. */
  let made = 0;
  let committing: Promise<boolean> | undefined;
  let looking: Promise<void> | undefined;
  let isClosed = false;
  let loadsStarted = 0;
  let newestLoad = 0;
  let isSound = true;
  /** Whether a loss of power may remove the newest version; the next version repeats everything in it. */
  let isUnsynced = false;
  const integrity = createIntegrity(log);
  const forgettable = createForgettable();
  const figures = {
    commits: { groups: 0, changes: 0, retries: 0 },
    freshnessChecks: { stamp: 0, look: 0 },
  } satisfies CatalogFigures;
  const chores = maintenance ? manifest.chores({ current, join }, log) : [];
  const housekeeping = createHousekeeping(chores, log);

  const queue = createCommitQueue(commitWithRetries, maxWaiting);
  const { commitGroup } = createGroupCommits({
    manifest,
    forgettable,
    inTurn,
    held: () => ({ version, state, isSound, isUnsynced }),
    refresh: () => refresh(),
    confirm,
    take,
  });

  /** Returns the newest version that a worker of the process has seen. */
  const lastSeen = () => Math.max(version, newestSeen?.value ?? 0);
  const isNewest = (head: Head) => isSound && head.version === version && head.generation === generation;

  async function load({ version: target, generation: targetGeneration }: Head): Promise<void> {
    const started = ++loadsStarted;
    const from = version;
    const isOther =
      from > 0 && targetGeneration !== generation && (await manifest.isOther(from, state.facts.transaction));
    const delta =
      isSound && !isOther && from > 0 && from < target && state.isMergeable
        ? await manifest.changes(from, target)
        : undefined;
    const whole = delta === undefined ? await sharing.read(target, isSound) : undefined;
    // A load that started later has seen at least as much.
    if (started < newestLoad) return;
    newestLoad = started;
    if (whole !== undefined) [state, isSound] = [whole.state, true];
    else if (delta !== undefined && version === from) {
      state.merge(delta);
      state.facts = delta.facts;
    } else return;
    version = whole?.version ?? target;
    generation = targetGeneration;
    newestSeen?.raise(version);
    exchange?.noteChange();
    if (isOther) log.warn({ version, known: from }, REPLACED);
    if (whole !== undefined && state.duplicates > 0) log.warn({ version }, "the manifest has duplicate rows");
  }
  const refresh = createSharedCheck(() => {
    looking = look();
    return looking;
  });
  async function look(): Promise<void> {
    if (isClosed) throw new LanceError("ServiceUnavailable", "the catalog is closed");
    figures.freshnessChecks.look += 1;
    let seen = lastSeen();
    let head = await manifest.head();
    // This process is about to apply its own commits, so nothing needs to be read.
    for (let waits = 0; head.version > version && waits < MAX_GROUPS; waits++) {
      const running = committing ?? (waits === 0 ? exchange?.catchUp() : undefined);
      if (running === undefined) break;
      await running.catch(() => {});
      if (head.generation !== generation) [seen, head] = [lastSeen(), await manifest.head()];
    }
    // A commit of this process that ended during the look has made the state newer.
    if (head.generation === generation && head.version >= seen && head.version < version) return;
    await integrity.guard(head.version, seen, async () => {
      if (!isNewest(head)) await load(head);
    });
  }

  /**
   * Checks whether the state is the newest, without reading anything; returns undefined if only `refresh` can tell.
   *
   * @param mayBeFollowed whether this process may be making the next version. Default: false
   */
  function confirm(mayBeFollowed = false): Promise<boolean> | undefined {
    if (!isSound || version === 0 || integrity.isDamaged()) return undefined;
    return manifest.confirm?.({ version, generation }, mayBeFollowed);
  }
  /** Like {@link confirm}, for many concurrent callers; undefined if checks cannot overlap. */
  const confirmed = manifest.confirm && createOverlappingCheck(async () => (await confirm()) ?? false);

  /**
   * Commits on the state and applies the commit to it.
   *
   * @param sinceRefresh the milliseconds since the state was last known to be the newest
   * @returns false if another process was faster
   */
  async function take(
    sinceRefresh: () => number,
    changes: Changes,
    work: () => Promise<Committed | undefined>,
  ): Promise<boolean> {
    const [base, onto] = [version, state];
    async function run(): Promise<boolean> {
      const committed = await work();
      if (committed === undefined) return false;
      isUnsynced = false;
      const { manifest: own } = committed.file;
      if (sinceRefresh() > SURE_WITHIN_MS && !(await manifest.isCurrent(own))) return false;
      made = committed.version;
      if (version === base && state === onto) await takeOver(committed, changes);
      newestSeen?.raise(committed.version);
      housekeeping.noteCommit();
      return true;
    }
    committing = run();
    try {
      return await committing;
    } catch (error) {
      isUnsynced ||= error instanceof UnsyncedError;
      throw error;
    } finally {
      committing = undefined;
    }
  }

  /** Brings the state to a commit that is based on it. */
  async function takeOver(committed: Committed, changes: Changes): Promise<void> {
    if (changes.size > MAX_ROWS_AT_ONCE) {
      // The commit has succeeded; if this fails, the next read repeats it.
      await load({ version: committed.version, generation }).catch((error: unknown) =>
        log.warn({ err: error, version: committed.version }, "the catalog cannot be read after a commit"),
      );
      return;
    }
    state.apply(changes, committed.addresses);
    state.facts = factsOf(committed.file.manifest);
    exchange?.tell(version, changes, committed);
    version = committed.version;
  }

  /** Reads the manifest of the newest version. */
  async function current(): Promise<Manifest | undefined> {
    await refresh();
    return version === 0 ? undefined : manifest.manifestOf(version);
  }
  /** Joins fragments between the commits of two groups; returns false if they have changed meanwhile. */
  async function join(fragments: readonly DataFragment[]): Promise<boolean> {
    const prepared = await manifest.prepareJoin(version, state, fragments);
    return inTurn(async () => {
      const sinceRefresh = startStopwatch();
      await refresh();
      return take(sinceRefresh, new Map(), () => manifest.join(version, prepared));
    });
  }
  async function commitWithRetries(
    group: readonly Mutation<unknown>[],
    mayFollow: () => void,
  ): Promise<readonly Outcome[]> {
    figures.commits.groups += 1;
    figures.commits.changes += group.length;
    for (let tries = 0; tries <= maxRetries; tries++) {
      if (tries > 0) figures.commits.retries += 1;
      if (tries > 0) await sleep(Math.random() * 10 * tries);
      const outcomes = await commitGroup(group, mayFollow).catch((error: unknown) => {
        if (error instanceof StateChanged) return undefined;
        if (tries > 0 || !isMismatch(error)) throw error;
        log.error(
          { err: error, version },
          "the catalog in memory does not fit the manifest and is read again",
        );
        isSound = false;
        return undefined;
      });
      if (outcomes !== undefined) return outcomes;
    }
    throw new LanceError("ConcurrentModification", "the catalog kept changing; try again");
  }

  /** Applies a version that the committing worker of the process has made, if it follows the state in memory. */
  function adopt({ base, version: next, changes, addresses, file }: MadeVersion): void {
    if (!isSound || version !== base || committing !== undefined) return;
    state.apply(changes, addresses);
    state.facts = factsOf(manifest.adopt(file));
    version = next;
    exchange?.noteChange();
  }
  /** Takes over the memory of the same version in another worker. */
  function replace(shared: SharedVersion): void {
    if (committing === undefined) state = sharing.sameIn(shared) ?? state;
  }
  const exchange: Exchange | undefined =
    workers &&
    joinExchange(workers, {
      known: () => state,
      refresh,
      mutateHere: queue.mutate,
      forgetHere: forgettable.add,
      applied: async () => void (await committing?.catch(() => {})),
      adopt,
      shareHere: sharing.share,
      replace,
      maxRetries,
    });

  const mutate = exchange?.mutate ?? queue.mutate;
  const refreshForRead = allowStaleness(
    async () => {
      figures.freshnessChecks.stamp += 1;
      const head = manifest.headNow();
      if (head !== undefined && isNewest(head)) return;
      if (!(await confirmed?.())) await refresh();
    },
    maxStalenessMs,
    () => Math.max(made, lastSeen()) > version,
  );
  return {
    async read() {
      await refreshForRead();
      return state;
    },
    known: () => state,
    figures,
    async rootProperties() {
      await refreshForRead();
      const { tableMetadata = {} } = (version === 0 ? undefined : await manifest.manifestOf(version)) ?? {};
      return Object.fromEntries(Object.entries(tableMetadata).filter(([key]) => !key.startsWith("lance.")));
    },
    mutate: (mutation) => traced("catalog commit", {}, () => mutate(mutation)),
    forget(changeId) {
      forgettable.add(changeId);
      exchange?.forget(changeId);
    },
    async close() {
      exchange?.close();
      await housekeeping.close();
      await queue.drained();
      isClosed = true;
      // A look that loses its files would report damage.
      await looking?.catch(() => {});
      await manifest.close();
    },
  };
}

/** Lets the commits of a catalog follow each other. */
function oneAtATime(): TakeTurn {
  const { withLocks } = createKeyedLocks();
  return (work) => withLocks([""], work);
}

function isMismatch(error: unknown): boolean {
  return error instanceof NothingCommitted && error.cause instanceof StateMismatch;
}
