import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import type { Engine } from "../../engine/engine.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { Lease } from "../../engine/handles.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import type { EngineFormat } from "./engine-format.ts";

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
