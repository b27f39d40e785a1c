import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { Engine } from "../../engine/engine.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { Lease } from "../../engine/handles.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { compareFormats, isTextFileVersion } from "../../format/files/text-file.ts";
import { newStagingKey } from "../../format/table-files.ts";
import { readVersion } from "../../format/versions/version-files.ts";

/** Work with the engine's handles of the manifest table. */
export interface EngineAccess {
  /** Works with the newest version. */
  newest<T>(work: (table: NativeTable) => Promise<T>): Promise<T>;
  /** Works with a version. */
  at<T>(version: number, work: (table: NativeTable) => Promise<T>): Promise<T>;
  /**
   * Reads the version that a manifest describes.
   *
   * @throws LanceError Unsupported, if the engine fails because it does not know the format
   */
  read<T>(manifest: Manifest, work: (table: NativeTable) => Promise<T>): Promise<T>;
}

/** Gives access to the table at a location through the engine. */
export function createEngineAccess(engine: Engine, location: string, format: EngineFormat): EngineAccess {
  async function newest<T>(work: (table: NativeTable) => Promise<T>): Promise<T> {
    return withLease(async ({ table, deletions }) => {
      await deletions.refuseDamaged();
      return work(table);
    });
  }
  async function withLease<T>(work: (lease: Lease) => Promise<T>): Promise<T> {
    const lease = await engine.acquire(location);
    try {
      return await engineCall(() => work(lease));
    } finally {
      lease.release();
    }
  }
  async function at<T>(version: number, work: (table: NativeTable) => Promise<T>): Promise<T> {
    return withLease(async (shared) => {
      await shared.deletions.refuseDamaged(BigInt(version));
      const table = await engine.atVersion(shared.table, version);
      try {
        return await work(table);
      } finally {
        table.close();
      }
    });
  }
  return {
    newest,
    at,
    async read(manifest, work) {
      return at(Number(manifest.version), work).catch(async (error: unknown) => {
        // An engine that does not know the format fails with errors that explain little.
        await format.check(manifest).catch((cause: unknown) => {
          throw isLanceError(cause, "Unsupported") ? cause : error;
        });
        throw error;
      });
    },
  };
}

/** Distinguishes released data formats of the engine from its drafts. */
export interface EngineFormat {
  /**
   * Checks that the engine has released the format of a table. The engine also writes and reads drafts of later
   * formats, which differ between its releases and from the final format.
   *
   * @throws LanceError Unsupported
   */
  check(manifest: Manifest): Promise<void>;
}

/**
 * Creates the check. It asks the engine once, by creating an empty dataset of its default format beside the manifest
 * table.
 */
export function createEngineFormat({ store, root }: DatasetRef, engine: Engine): EngineFormat {
  let newest: Promise<string> | undefined;

  async function ask(): Promise<string> {
    const staging = { store, root: newStagingKey(root.slice(0, Math.max(0, root.lastIndexOf("/")))) };
    const { encodeRows } = await import("./row-codec.ts");
    try {
      await engine.create(store.uriOf(staging.root), encodeRows([]), "create");
      return (await readVersion(staging)).manifest.dataFormat?.version ?? "";
    } finally {
      engine.forget(store.uriOf(staging.root));
      await store.deleteDirectory(staging.root);
    }
  }
  return {
    async check({ dataFormat }) {
      const version = dataFormat?.version ?? "";
      if (isTextFileVersion(version)) return;
      newest ??= ask().catch((error: unknown) => {
        newest = undefined;
        throw error;
      });
      if (compareFormats(version, await newest) <= 0) return;
      const message = `the catalog has the data format ${version}, which is newer than the engine of this version`;
      throw new LanceError("Unsupported", message);
    },
  };
}
