import type { Logger } from "pino";
import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { createWorkNotes } from "../../batch/work-notes.ts";
import type { Engine } from "../../engine/engine.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { type ManifestFile, manifestFileOf, parseManifestFile } from "../../format/files/manifest-file.ts";
import { UnsyncedError } from "../../format/local/local-errors.ts";
import { keyIn, type ObjectStore } from "../../format/storage.ts";
import { createStorageClock } from "../../format/storage-clock.ts";
import { readVersion, readVersionIfThere } from "../../format/versions/version-files.ts";
import { createHintWriter } from "../../format/versions/version-hint.ts";
import type { Memory } from "../state/memory.ts";
import type { Delta } from "../state/rows/stored-row.ts";
import { type CatalogState, createState } from "../state/state.ts";
import type { Changes } from "../state/view.ts";
import { factsOf, type VerdictChange, type VersionFacts } from "../state/view.ts";
import type { Chore } from "./background.ts";
import type { CommitBase } from "./commit-base.ts";
import { foreignValues } from "./commit-base.ts";
import { liveRows } from "./commit-plan.ts";
import { createEngineAccess, createEngineFormat } from "./engine-access.ts";
import { createFreshness, type Freshness, type Head } from "./newest-version.ts";
import type { Committed, PreparedCommit } from "./prepared-commit.ts";
import { createJoining, createOptimizing, createPruning } from "./prune-and-compact.ts";
import { readDelta, readIds, readState } from "./reader.ts";
import { createFragmentWriter, createManifestWriter, isPartOfHistory, type PreparedJoin } from "./writer.ts";

/** Name of the manifest table in the base directory. */
export const MANIFEST_NAME = "__manifest";

/** Maximum number of rows for which memory is taken before they are read: a manifest may promise too much. */
const MAX_EXPECTED_ROWS = 4_000_000;

/** The `__manifest` table as a dataset. */
export interface ManifestTable {
  /** Returns the newest version, with every commit that finished before this call, in any process. */
  head(): Promise<Head>;
  /**
   * Answers synchronously if a single look at the disk proves that nothing has changed; returns undefined otherwise.
   */
  headNow(): Head | undefined;
  /** Checks whether a head is still the newest, as {@link Freshness.confirm}; undefined on a disk. */
  readonly confirm?: Freshness["confirm"];
  /**
   * Reads a whole version.
   *
   * @param memory memory for its rows. Default: memory that only this thread reads.
   */
  read(version: number, memory?: Memory): Promise<CatalogState>;
  /**
   * Reads the differences between an earlier version of this table and a later one.
   *
   * @returns undefined if the later one must be read as a whole: the earlier one is gone, or much is new
   */
  changes(from: number, to: number): Promise<VersionDelta | undefined>;
  /**
   * Whether there is a version of a number that another transaction has made, as after a restore from a backup.
   *
   * @param transaction name of the transaction that made the known version of that number
   */
  isOther(version: number, transaction: string): Promise<boolean>;
  /** Creates the table if it does not exist; another process may do so concurrently. */
  ensure(): Promise<void>;
  /**
   * Finds the rows that would lose values of other programs if changes were applied to a version.
   *
   * @returns their ids; undefined if the version has disappeared, or must be read and is still being published
   */
  losing(base: CommitBase, changes: Changes): Promise<readonly string[] | undefined>;
  /**
   * Prepares a commit of changes as the version after another one, and begins to write its files.
   *
   * @returns undefined if that version has disappeared
   * @throws NothingCommitted, and then nothing is left behind; LanceError Unsupported for a table that cannot be
   *   written here
   */
  prepare(base: CommitBase, changes: Changes, verdicts: VerdictChange): Promise<PreparedCommit | undefined>;
  /** Reads the manifest of a version; returns undefined if the version has disappeared. */
  manifestOf(version: number): Promise<Manifest | undefined>;
  /** Writes the rows of some fragments of the version of `state` to a single file. */
  prepareJoin(
    version: number,
    state: CatalogState,
    fragments: readonly DataFragment[],
  ): Promise<PreparedJoin>;
  /** Commits a join as the version after the given one; returns undefined if that is no longer possible. */
  join(version: number, prepared: PreparedJoin): Promise<Committed | undefined>;
  /**
   * Notes a version that another worker of the process has made, as if it had been committed here.
   *
   * @returns its manifest
   */
  adopt(file: { readonly key: string; readonly bytes: Uint8Array }): Manifest;
  /** Returns the background work that keeps the table small. */
  chores(access: ChoreAccess, log: Logger): readonly Chore[];
  /**
   * Whether a version that was made here is part of the history, rather than beside a history that continued without
   * it.
   *
   * @throws LanceError OutcomeUnknown if that cannot be found out
   */
  isCurrent(made: Manifest): Promise<boolean>;
  close(): Promise<void>;
}

/** Differences between an earlier version and a later one, and the facts of the later one. */
export type VersionDelta = Delta & { readonly facts: VersionFacts };

/** Access of background work to the catalog. */
export interface ChoreAccess {
  /** Reads the newest manifest; returns undefined while there is none. */
  current(): Promise<Manifest | undefined>;
  /** Joins plain fragments; returns false if they have changed meanwhile. */
  join(fragments: readonly DataFragment[]): Promise<boolean>;
}

/** Gives access to the manifest table of a base directory, which is a path or URI of the store. */
export function createManifestTable(
  base: string,
  engine: Engine,
  store: ObjectStore,
  clock = createStorageClock(store, store.keyOf(base)),
): ManifestTable {
  const root = keyIn(store.keyOf(base), MANIFEST_NAME);
  const location = store.uriOf(root);
  const dataset = { store, root };
  const { head, headNow, confirm, noteMade } = createFreshness(dataset);
  const engineFormat = createEngineFormat(dataset, engine);
  const onEngine = createEngineAccess(engine, location, engineFormat);
  const writer = createManifestWriter(dataset, createFragmentWriter(dataset, engine, engineFormat));
  const hint = createHintWriter(dataset);
  const notes = createWorkNotes(store.keyOf(base), store, clock);
  let newest: ManifestFile | undefined;
  let synced: Promise<void> | undefined;

  async function fileOf(version: number): Promise<ManifestFile | undefined> {
    if (newest?.manifest.version === BigInt(version)) return newest;
    const found = await readVersionIfThere(dataset, BigInt(version));
    if (found !== undefined) newest = found;
    return found;
  }
  /** Runs work that needs an unchanged version; returns undefined if the version has disappeared. */
  async function withBase<T>(
    { version, file }: Pick<CommitBase, "version" | "file">,
    work: (base: ManifestFile) => Promise<T>,
  ): Promise<T | undefined> {
    const base = file ?? (await fileOf(version));
    if (base === undefined) return undefined;
    checkFeatureFlags(base.manifest, "writer");
    return work(base);
  }
  function landed(committed: Committed | undefined): Committed | undefined {
    if (committed === undefined) return undefined;
    newest = committed.file;
    noteMade(committed.version);
    hint(committed.file.manifest.version);
    return committed;
  }
  /** Makes the writes of the engine and of other processes durable, before anything here builds on them. */
  function syncOthers(): Promise<void> {
    synced ??= (store.files?.syncTree(root) ?? Promise.resolve()).catch((error: unknown) => {
      // A failed sync must not be repeated: it would succeed without having written anything.
      if (!(error instanceof UnsyncedError)) synced = undefined;
      throw error;
    });
    return synced;
  }
  return {
    head,
    headNow,
    ...(confirm && { confirm }),
    async read(version, memory) {
      if (version === 0) return createState([], memory);
      newest = await readVersion(dataset, BigInt(version));
      checkFeatureFlags(newest.manifest, "reader");
      const { fragments } = newest.manifest;
      const facts = factsOf(newest.manifest);
      const rows = Math.min(
        MAX_EXPECTED_ROWS,
        fragments.reduce((sum, fragment) => sum + liveRows(fragment), 0),
      );
      return Object.assign(await onEngine.read(newest.manifest, (table) => readState(table, rows, memory)), {
        facts,
      });
    },
    async changes(from, to) {
      // A second read could return the version of another table that has replaced the known one.
      const earlier = newest?.manifest.version === BigInt(from) ? newest : undefined;
      const later = await fileOf(to);
      if (earlier === undefined || later === undefined) return undefined;
      checkFeatureFlags(later.manifest, "reader");
      const fragments = [earlier.manifest.fragments, later.manifest.fragments] as const;
      const delta = await onEngine.read(later.manifest, (table) => readDelta(table, ...fragments));
      return delta && { ...delta, facts: factsOf(later.manifest) };
    },
    async isOther(version, transaction) {
      // Not from memory, where the known version is.
      const found = await readVersionIfThere(dataset, BigInt(version));
      return found !== undefined && found.manifest.transactionFile !== transaction;
    },
    async ensure() {
      if ((await head()).version > 0) return;
      const { encodeRows } = await import("./row-codec.ts");
      await store.files?.makeDirectory(root);
      try {
        await engine.create(location, encodeRows([]), "create");
      } catch (error) {
        if (!isLanceError(error, "TableAlreadyExists")) throw error;
      }
    },
    losing: (base, changes) =>
      withBase(base, async ({ manifest }) => {
        const condition = foreignValues(manifest, base.state, changes);
        if (condition === undefined) return [];
        return base.file === undefined
          ? onEngine.at(base.version, (table) => readIds(table, condition))
          : undefined;
      }),
    async prepare(base, changes, verdicts) {
      await syncOthers();
      const prepared = await withBase(base, (file) => writer.prepare(file, base, changes, verdicts));
      return prepared && { ...prepared, publish: async (options) => landed(await prepared.publish(options)) };
    },
    manifestOf: async (version) => (await fileOf(version))?.manifest,
    async prepareJoin(version, state, fragments) {
      const prepared = await withBase({ version }, (base) => writer.prepareJoin(base, state, fragments));
      if (prepared === undefined) throw new LanceError("ConcurrentModification", "the version is gone");
      return prepared;
    },
    async join(version, prepared) {
      return landed(await withBase({ version }, (base) => writer.join(base, prepared)));
    },
    adopt({ key, bytes }) {
      const manifest = parseManifestFile(key, bytes);
      newest = manifestFileOf(key, bytes, manifest);
      noteMade(Number(manifest.version));
      return manifest;
    },
    chores({ current, join }, log) {
      async function optimize(): Promise<void> {
        const end = await notes.begin(MANIFEST_NAME);
        try {
          // The first of all dates as cutoff disables the engine's own pruning, which would remove too much.
          await onEngine.newest((table) => table.optimize(0));
        } finally {
          await end();
        }
      }
      return [
        createJoining(current, join),
        createOptimizing(current, optimize, log),
        createPruning(dataset, clock, () => notes.isOtherAtWork(MANIFEST_NAME)),
      ];
    },
    isCurrent: (made) => afterChange(() => isPartOfHistory(dataset, made)),
    async close() {
      await hint.idle();
      engine.forget(location);
    },
  };
}

/**
 * Refuses a catalog that needs a feature from a later version of the format; no feature is known yet.
 *
 * @throws LanceError Unsupported
 */
function checkFeatureFlags({ tableMetadata }: Manifest, role: "reader" | "writer"): void {
  const flags = tableMetadata[`lance.namespace.manifest.${role}_feature_flags`] ?? "0";
  if (!/^\d+$/.test(flags) || BigInt(flags) === 0n) return;
  throw new LanceError(
    "Unsupported",
    `the catalog uses features that this version cannot ${role === "reader" ? "read" : "write"} (${role} flags ${flags}); upgrade the server`,
  );
}
