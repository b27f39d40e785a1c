import type { Logger } from "pino";
import type { DataFragment, Manifest } from "../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { BackendFigures } from "../../../namespace/figures.ts";
import { startStopwatch } from "../../../runtime/clocks.ts";
import { createSharedCheck } from "../../../runtime/promises.ts";
import { traced } from "../../../runtime/tracing.ts";
import { createKeyedLocks } from "../concurrency/locks.ts";
import { allowStaleness, createOverlappingCheck, createStaleness } from "../concurrency/shared-checks.ts";
import { UnsyncedError } from "../format/local/local-errors.ts";
import { createForgettable, createGroupCommits, type TakeTurn, withRetries } from "./commits/commit-group.ts";
import { createCommitQueue, MAX_GROUPS } from "./commits/commit-queue.ts";
import type { Mutation } from "./commits/decide.ts";
import { type Exchange, joinExchange } from "./exchange/exchange.ts";
import type { MadeVersion, SharedVersion } from "./exchange/messages.ts";
import { createHeldVersion, createIntegrity } from "./held-version.ts";
import { createHousekeeping } from "./manifest/background.ts";
import type { ManifestTable } from "./manifest/manifest-table.ts";
import type { ConfirmOptions } from "./manifest/newest-version.ts";
import type { Committed } from "./manifest/prepared-commit.ts";
import { MAX_ROWS_AT_ONCE } from "./manifest/reader.ts";
import { type CatalogOptions, createSharing } from "./sharing.ts";
import { PROPERTY_LIMITS, type PropertyLimits } from "./state/properties-size.ts";
import type { CatalogState } from "./state/state.ts";
import type { Changes } from "./state/view.ts";

/** Figures of a catalog. */
type CatalogFigures = Pick<BackendFigures, "commits" | "freshnessChecks">;

/** Options of {@link Catalog.read}. */
export interface ReadOptions {
  /** Whether the call waits for a listing at the same time, so that one may check the catalog, too; see {@link ConfirmOptions.byListing}. */
  readonly besideListing?: boolean;
}

/** Objects of a base directory, according to the manifest. */
export interface Catalog {
  /**
   * Returns the state with every commit that finished before this call, in any process. With an allowed staleness,
   * commits of other processes may be missing for that long.
   *
   * @param options Default: the call lists nothing
   * @throws LanceError ServiceUnavailable while versions are missing that were seen before, or cannot be read
   */
  read(options?: ReadOptions): Promise<CatalogState>;
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
  /** Bounds of properties, which {@link mutate} enforces. */
  readonly limits: PropertyLimits;
  /** Counts since the start. */
  readonly figures: CatalogFigures;
  /**
   * Commits a change.
   *
   * The change is on the disk when this returns.
   *
   * @throws LanceError the error of the mutation; InvalidInput or PayloadTooLarge for properties beyond {@link limits};
   *   ConcurrentModification if other processes won every attempt;
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

/** Opens the catalog of a manifest table. */
export function createCatalog(
  manifest: ManifestTable,
  log: Logger,
  {
    staleness = createStaleness(0),
    maxWaiting = 10_000,
    properties: limits = PROPERTY_LIMITS,
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
    held: () => (held.isSound && held.version > 0 ? { version: held.version, state: held.state } : undefined),
    refresh: () => refresh(),
    ask: async () => exchange?.share(),
  });
  const held = createHeldVersion({
    manifest,
    sharing,
    newestSeen,
    onLoad() {
      exchange?.noteChange();
      warnOfSize();
    },
    log,
  });
  /** The newest version that this process has committed. */
  let made = 0;
  let committing: Promise<boolean> | undefined;
  let looking: Promise<void> | undefined;
  let isClosed = false;
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

  const { commitGroup } = createGroupCommits({
    manifest,
    forgettable,
    limits,
    inTurn,
    held: () => ({ version: held.version, state: held.state, isSound: held.isSound, isUnsynced }),
    refresh: () => refresh(),
    confirm,
    take,
  });
  const commit = withRetries(commitGroup, {
    maxRetries,
    counts: figures.commits,
    onMismatch(error) {
      const { version } = held;
      log.error({ err: error, version }, "the catalog in memory does not fit the manifest and is read again");
      held.distrust();
    },
  });
  const queue = createCommitQueue(commit, maxWaiting);

  let hasWarned = false;
  function warnOfSize(): void {
    const { propertiesBytes } = held.state;
    if (hasWarned || propertiesBytes <= limits.catalogBytes) return;
    hasWarned = true;
    log.warn(
      { propertiesBytes, maxBytes: limits.catalogBytes },
      "the properties of the catalog exceed --max-catalog-properties; changes that add to them are refused",
    );
  }
  /** Returns the newest version that a worker of the process has seen. */
  const lastSeen = () => Math.max(held.version, newestSeen?.value ?? 0);

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
    for (let waits = 0; head.version > held.version && waits < MAX_GROUPS; waits++) {
      const running = committing ?? (waits === 0 ? exchange?.catchUp() : undefined);
      if (running === undefined) break;
      await running.catch(() => {});
      if (head.generation !== held.generation) [seen, head] = [lastSeen(), await manifest.head()];
    }
    // A commit of this process that ended during the look has made the state newer.
    if (head.generation === held.generation && head.version >= seen && head.version < held.version) return;
    await integrity.guard(head.version, seen, async () => {
      if (!held.isNewest(head)) await held.load(head);
    });
  }

  /**
   * Checks whether the state is the newest, without reading anything; returns undefined if only `refresh` can tell.
   *
   * @param options see {@link ConfirmOptions}
   */
  function confirm(options?: ConfirmOptions): Promise<boolean> | undefined {
    const { version, generation, isSound } = held;
    if (!isSound || version === 0 || integrity.isDamaged()) return undefined;
    return manifest.confirm?.({ version, generation }, options);
  }
  /** Like {@link confirm}, for many concurrent callers; undefined if checks cannot overlap. */
  const overlapping = (options?: ConfirmOptions) =>
    manifest.confirm && createOverlappingCheck(async () => (await confirm(options)) ?? false);
  const [confirmed, confirmedByListing] = [overlapping(), overlapping({ byListing: true })];

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
    const { version: base, state: onto } = held;
    async function run(): Promise<boolean> {
      const committed = await work();
      if (committed === undefined) return false;
      isUnsynced = false;
      const { manifest: own } = committed.file;
      if (sinceRefresh() > SURE_WITHIN_MS && !(await manifest.isCurrent(own))) return false;
      made = committed.version;
      if (held.version === base && held.state === onto) await takeOver(committed, changes);
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
      await held
        .load({ version: committed.version, generation: held.generation })
        .catch((error: unknown) =>
          log.warn({ err: error, version: committed.version }, "the catalog cannot be read after a commit"),
        );
      return;
    }
    const { version: base } = held;
    held.advance(committed.version, changes, committed.addresses, committed.file.manifest);
    exchange?.tell(base, changes, committed);
  }

  /** Reads the manifest of the newest version. */
  async function current(): Promise<Manifest | undefined> {
    await refresh();
    return held.version === 0 ? undefined : manifest.manifestOf(held.version);
  }
  /** Joins fragments between the commits of two groups; returns false if they have changed meanwhile. */
  async function join(fragments: readonly DataFragment[]): Promise<boolean> {
    const prepared = await manifest.prepareJoin(held.version, held.state, fragments);
    return inTurn(async () => {
      const sinceRefresh = startStopwatch();
      await refresh();
      return take(sinceRefresh, new Map(), () => manifest.join(held.version, prepared));
    });
  }
  /** Applies a version that the committing worker of the process has made, if it follows the state in memory. */
  function adopt({ base, version: next, changes, addresses, file }: MadeVersion): void {
    if (!held.isSound || held.version !== base || committing !== undefined) return;
    held.advance(next, changes, addresses, manifest.adopt(file));
    exchange?.noteChange();
  }
  /** Takes over the memory of the same version in another worker. */
  function replace(shared: SharedVersion): void {
    const same = committing === undefined ? sharing.sameIn(shared) : undefined;
    if (same !== undefined) held.replace(same);
  }
  const exchange: Exchange | undefined =
    workers &&
    joinExchange(workers, {
      known: () => held.state,
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
    async (byListing: boolean) => {
      figures.freshnessChecks.stamp += 1;
      const head = manifest.headNow();
      if (head !== undefined && held.isNewest(head)) return;
      if (!(await (byListing ? confirmedByListing : confirmed)?.())) await refresh();
    },
    staleness,
    () => Math.max(made, lastSeen()) > held.version,
  );
  return {
    async read({ besideListing = false } = {}) {
      await refreshForRead(besideListing);
      return held.state;
    },
    known: () => held.state,
    limits,
    figures,
    async rootProperties() {
      await refreshForRead(false);
      const { version } = held;
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
