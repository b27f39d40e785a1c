import type { DataFragment } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { Engine } from "../../engine/engine.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import { putStagingBase } from "../../format/changes/staged-rows.ts";
import { type DatasetRef, dataDirectory } from "../../format/dataset.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { isTextFileVersion } from "../../format/files/text-file.ts";
import { newStagingKey } from "../../format/staging-key.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { StoredRow } from "../state/rows/stored-row.ts";
import type { EngineFormat } from "./engine-access.ts";
import { encodeFragment, type RowFormat } from "./row-fragment.ts";

/** A fragment that is not part of a version yet, and has no id. */
export interface NewFragment {
  readonly fragment: DataFragment;
  /** Resolves when its file is written. */
  readonly written: Promise<unknown>;
}

/** Writes the rows of a new fragment to a data file of the manifest table, in the table's format. */
export type FragmentWriter = (
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
