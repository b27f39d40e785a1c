import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Engine } from "../../engine/engine.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { compareFormats, isTextFileVersion } from "../../format/files/text-file.ts";
import { newStagingKey } from "../../format/staging-key.ts";
import { readVersion } from "../../format/versions/version-files.ts";

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
