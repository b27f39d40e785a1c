import type { NextVersion } from "../../format/changes/next-version.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { publishVersion } from "../../format/versions/publish-version.ts";
import type { RowAddress, StoredRow } from "../state/rows/stored-row.ts";

/** A commit that is part of the history. */
export interface Committed {
  readonly version: number;
  readonly file: ManifestFile;
  /** Content of the file. */
  readonly bytes: Uint8Array;
  /** Addresses of the rows in the new fragment: those that were put, and those that were moved. */
  readonly addresses: ReadonlyMap<string, RowAddress>;
}

/**
 * A commit that failed before any part of it was visible; the cause explains why, and any of the changes may be at
 * fault.
 */
export class NothingCommitted extends Error {}

/** A commit whose files are being written. */
export interface PreparedCommit extends Committed {
  /** Rows of the new fragment, in order. */
  readonly rows: readonly StoredRow[];
  /**
   * Makes the commit part of the history as soon as its files are written.
   *
   * @returns undefined if its base is not the newest version; then nothing is left behind
   * @throws NothingCommitted, and then nothing is left behind; ServiceUnavailable and other errors of the storage leave
   *   the outcome open
   */
  publish(options?: PublishOptions): Promise<Committed | undefined>;
  /** Removes the files of a commit that is not published. */
  discard(): Promise<void>;
}

/** Options of {@link PreparedCommit.publish}. */
export interface PublishOptions {
  /** Whether the version that the commit follows is the newest. Default: it is. */
  readonly confirmed?: Promise<boolean> | undefined;
  /** Called when everything is written except for the manifest, which is then put. Default: does nothing. */
  readonly onPut?: (() => void) | undefined;
}

/** The version that a commit follows is not the newest. */
class NotNewest extends Error {}

/** The parts of a commit besides its version. */
interface CommitParts extends Pick<PreparedCommit, "rows" | "addresses"> {
  /** Resolves when the files are written. */
  readonly files: Promise<unknown>;
  /** Removes those that are written. */
  readonly removeFiles: () => Promise<void>;
}

/** Creates a commit of a version whose files are being written. */
export function createPreparedCommit(
  store: ObjectStore,
  version: NextVersion,
  { rows, addresses, files, removeFiles }: CommitParts,
): PreparedCommit {
  const { file, bytes } = version;
  const committed: Committed = { version: Number(file.manifest.version), file, bytes, addresses };
  // Its failure shows when the commit is published.
  files.catch(() => {});
  return {
    ...committed,
    rows,
    async publish({ confirmed = Promise.resolve(true), onPut } = {}) {
      const ready = allDone([files, checkNewest(confirmed)]);
      if (onPut !== undefined) ready.then(onPut, () => {});
      const isOurs = await publishVersion(store, version, ready).catch(async (error: unknown) => {
        await ready.catch(async (cause: unknown) => {
          if (cause instanceof NotNewest) return;
          await removeFiles();
          throw new NothingCommitted("the files of a commit cannot be written", { cause });
        });
        if (error instanceof NotNewest) return false;
        throw error;
      });
      if (isOurs) return committed;
      await removeFiles();
      return undefined;
    },
    async discard() {
      await files.catch(() => {});
      await removeFiles();
    },
  };
}

/** @throws NotNewest */
async function checkNewest(confirmed: Promise<boolean>): Promise<void> {
  if (!(await confirmed)) throw new NotNewest("another version is the newest");
}

/**
 * Waits for several pieces of work.
 *
 * @throws the first failure, after all of them have ended
 */
export async function allDone(work: readonly (Promise<unknown> | undefined)[]): Promise<void> {
  for (const result of await Promise.allSettled(work)) {
    if (result.status === "rejected") throw result.reason;
  }
}
