import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { Engine } from "../../engine/engine.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import { buildNextVersion } from "../../format/changes/next-version.ts";
import { changeRows, putStagingBase, type RowsChange } from "../../format/changes/staged-rows.ts";
import { type DatasetRef, dataDirectory } from "../../format/dataset.ts";
import { deletionKey } from "../../format/files/deletion-file.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { isTextFileVersion } from "../../format/files/text-file.ts";
import { newStagingKey } from "../../format/table-files.ts";
import { readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { latestVersion, readVersion, readVersionIfThere } from "../../format/versions/version-files.ts";
import type { StoredRow } from "../state/rows/stored-row.ts";
import { inSlicesOn, StateChanged } from "../state/steps.ts";
import { type Changes, NO_VERDICTS, type VerdictChange, withVerdicts } from "../state/view.ts";
import {
  type BaseState,
  type CommitBase,
  encodeFragment,
  fileNameOf,
  type RowFormat,
  rowFormatOf,
} from "./commit-base.ts";
import { planCommit } from "./commit-plan.ts";
import type { EngineFormat } from "./engine-access.ts";
import { createFragmentRows, type ThinnedFragment, thinFragment, writeDeletions } from "./fragment-rows.ts";
import {
  allDone,
  type Committed,
  createPreparedCommit,
  NothingCommitted,
  type PreparedCommit,
} from "./prepared-commit.ts";
import { KEEP_VERSIONS, markGaps } from "./prune-and-compact.ts";

/** Writes commits of the manifest table. */
export interface ManifestWriter {
  /**
   * Prepares a commit of changes as the version after `base`, whose state `on` has, and begins to write its files.
   *
   * @throws NothingCommitted, and then nothing is left behind; LanceError Unsupported for a table that cannot be
   *   written here
   */
  prepare(
    base: ManifestFile,
    on: Pick<CommitBase, "state" | "revision">,
    changes: Changes,
    verdicts?: VerdictChange,
  ): Promise<PreparedCommit>;
  /**
   * Writes the rows of plain fragments to a single file, which becomes a fragment through {@link ManifestWriter.join}.
   */
  prepareJoin(
    base: ManifestFile,
    state: BaseState,
    fragments: readonly DataFragment[],
  ): Promise<PreparedJoin>;
  /**
   * Replaces fragments by the fragment that was made of them.
   *
   * @returns undefined if they have changed, or another writer was faster; then nothing is left behind
   */
  join(base: ManifestFile, prepared: PreparedJoin): Promise<Committed | undefined>;
}

/** Fragments to join, and the file of their rows. */
export interface PreparedJoin {
  readonly from: readonly DataFragment[];
  readonly fragment: DataFragment;
  readonly rows: readonly StoredRow[];
}

/** Creates the writer of a manifest table. */
export function createManifestWriter(dataset: DatasetRef, writeFragment: FragmentWriter): ManifestWriter {
  const { store } = dataset;
  const { create } = store;
  const data = `${dataDirectory(dataset)}/data`;
  const fragmentRows = createFragmentRows();

  /** Removes the files of a commit that is not part of the history. */
  async function discard(
    updated: readonly DataFragment[],
    added: DataFragment | undefined,
    transaction?: string,
  ): Promise<void> {
    const keys = updated.map((fragment) => deletionKey(dataset, fragment) as string);
    if (transaction !== undefined) keys.push(transaction);
    if (added !== undefined) keys.push(`${data}/${fileNameOf(added)}`);
    await Promise.all(keys.map((key) => store.delete(key).catch(() => {})));
  }
  /** Builds the version of a change of rows, whose files are being written, and begins to write its transaction. */
  async function build(
    base: ManifestFile,
    change: RowsChange,
    rows: readonly StoredRow[],
    written: Promise<unknown>,
    verdicts = NO_VERDICTS,
  ): Promise<PreparedCommit> {
    const { updated, added } = change;
    const { manifest, operation, addedId } = changeRows(base.manifest, change);
    const marked = markGaps(withVerdicts(manifest, verdicts), base.manifest.version + 1n);
    const properties = propertiesAfter(base.manifest);
    const next = await buildNextVersion(dataset, base, marked, { operation, properties });
    const { transaction } = next;
    const files = allDone([written, transaction && create(transaction.key, transaction.bytes)]);
    fragmentRows.note(manifest, added, rows);
    const fragment = Number(addedId);
    return createPreparedCommit(store, next, {
      rows,
      addresses: new Map(rows.map(({ objectId }, offset) => [objectId, { fragment, offset }])),
      files,
      removeFiles: () => discard(updated, added, transaction?.key),
    });
  }
  /** Plans the parts of a commit; writes nothing. */
  function* plan({ manifest }: ManifestFile, format: RowFormat, state: BaseState, changes: Changes) {
    const commit = yield* planCommit(manifest, format, state, changes, (fragments) =>
      fragmentRows.of(fragments, state),
    );
    const { rows, removed } = commit;
    const thinned: ThinnedFragment[] = [];
    for (const [fragment, lost] of commit.thinned) {
      thinned.push(thinFragment(manifest.version, state, fragment, lost));
      yield;
    }
    return { rows, removed, thinned };
  }
  return {
    async prepare(base, { state, revision }, changes, verdicts) {
      const format = rowFormatOf(base.manifest);
      const { rows, removed, thinned, added } = await orNothing(async () => {
        const planned = await inSlicesOn(state, plan(base, format, state, changes), revision);
        const added = planned.rows.length === 0 ? undefined : await writeFragment(base, planned.rows, format);
        return { ...planned, added };
      });
      const writes: Promise<unknown>[] = thinned.map((each) => writeDeletions(dataset, each));
      if (added !== undefined) writes.push(added.written);
      const updated = thinned.map(({ fragment }) => fragment);
      const written = allDone(writes);
      // The version is built meanwhile, and nothing awaits the files yet.
      written.catch(() => {});
      return build(base, { removed, updated, added: added?.fragment }, rows, written, verdicts);
    },
    async prepareJoin(base, state, from) {
      const rows = [...fragmentRows.of(from, state).values()].flat();
      const { fragment, written } = await writeFragment(base, rows, rowFormatOf(base.manifest));
      await written;
      return { from, fragment, rows };
    },
    async join(base, { from, fragment, rows }) {
      const now = new Map(base.manifest.fragments.map((other) => [fileNameOf(other), other]));
      const same = from.every((old) => isSame(old, now.get(fileNameOf(old))));
      if (!same) {
        await discard([], fragment);
        return undefined;
      }
      const change = { removed: new Set(from.map(({ id }) => id)), updated: [], added: fragment };
      return (await build(base, change, rows, Promise.resolve())).publish();
    },
  };
}

/**
 * Runs the work before a commit is published.
 *
 * @throws NothingCommitted, StateChanged
 */
async function orNothing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    // The table cannot be written at all, whatever the changes are.
    if (isLanceError(cause, "Unsupported") || cause instanceof StateChanged) throw cause;
    throw new NothingCommitted("a commit cannot be prepared", { cause });
  }
}

/** Whether a fragment's rows are unchanged. */
function isSame(a: DataFragment, b: DataFragment | undefined): boolean {
  return b !== undefined && a.id === b.id && a.deletionFile?.id === b.deletionFile?.id;
}

/** Property of a commit's transaction: the name of the transaction that made the version before. */
const FOLLOWS = "lance_gateway.follows";

/** Returns the properties of the transaction of a commit that follows a version. */
function propertiesAfter({ transactionFile }: Manifest): Readonly<Record<string, string>> {
  return { [FOLLOWS]: transactionFile };
}

/**
 * Whether a version that was made here is part of the history. If others had made and pruned a version of its number before, the
 * history continues without it.
 *
 * @throws LanceError OutcomeUnknown, if the version after it is gone, or another implementation has made that one
 */
export async function isPartOfHistory(dataset: DatasetRef, made: Manifest): Promise<boolean> {
  const newest = await latestVersion(dataset);
  // Pruning keeps so many versions, so none of this number can have gone.
  if (newest === undefined || newest.version < made.version + BigInt(KEEP_VERSIONS)) return true;
  const next = await readVersionIfThere(dataset, made.version + 1n);
  const transaction = next && (await readTransactionMessage(dataset, next));
  const follows = transaction?.transactionProperties[FOLLOWS];
  if (follows !== undefined && made.transactionFile !== "") return follows === made.transactionFile;
  throw new LanceError(
    "OutcomeUnknown",
    "the commit took so long that others have removed what shows whether it counts; look before you repeat it",
  );
}

/** A fragment that is not part of a version yet, and has no id. */
interface NewFragment {
  readonly fragment: DataFragment;
  /** Resolves when its file is written. */
  readonly written: Promise<unknown>;
}

/** Writes the rows of a new fragment to a data file of the manifest table, in the table's format. */
type FragmentWriter = (
  base: ManifestFile,
  rows: readonly StoredRow[],
  format: RowFormat,
) => Promise<NewFragment>;

/**
 * Creates the writer of data files of a manifest table.
 *
 * Files in known formats are encoded here. The engine writes files of newer formats, to a separate dataset that is like
 * the table without its rows, and the file moves to the table. The gateway still makes the commit (docs/adr/0005).
 */
export function createFragmentWriter(
  dataset: DatasetRef,
  engine: Engine,
  engineFormat: EngineFormat,
): FragmentWriter {
  const { store, root } = dataset;
  const data = `${dataDirectory(dataset)}/data`;

  async function writeByEngine(base: ManifestFile, rows: readonly StoredRow[]): Promise<DataFragment> {
    await engineFormat.check(base.manifest);
    const { encodeStoredRows } = await import("./row-codec.ts");
    const staging = { store, root: newStagingKey(root.slice(0, Math.max(0, root.lastIndexOf("/")))) };
    const path = store.uriOf(staging.root);
    try {
      await putStagingBase(staging, base);
      const lease = await engine.acquire(path);
      try {
        await engineCall(() => lease.table.add(encodeStoredRows(rows), "append"));
      } finally {
        lease.release();
      }
      const { fragments } = (await readVersion(staging)).manifest;
      const [fragment] = fragments;
      const name = fragment?.files[0]?.path;
      if (fragment === undefined || name === undefined || fragments.length > 1 || fragment.files.length > 1) {
        throw new LanceError(
          "Unsupported",
          "the catalog cannot be written in its data format by this version",
        );
      }
      await store.move(`${dataDirectory(staging)}/data/${name}`, `${data}/${name}`);
      return fragment;
    } finally {
      engine.forget(path);
      await store.deleteDirectory(staging.root);
    }
  }
  return async (base, rows, format) => {
    const { version } = format;
    if (!isTextFileVersion(version)) {
      return { fragment: await writeByEngine(base, rows), written: Promise.resolve() };
    }
    const { name, bytes, fragment } = encodeFragment(rows, { ...format, version });
    return { fragment, written: store.create(`${data}/${name}`, bytes) };
  };
}
