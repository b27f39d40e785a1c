import type { DataFragment } from "../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Engine } from "../engine/engine.ts";
import { engineCall } from "../engine/errors.ts";
import { type DatasetRef, dataDirectory } from "../format/dataset.ts";
import type { ManifestFile } from "../format/manifest-file.ts";
import { putStagingBase } from "../format/staged-rows.ts";
import { newStagingKey } from "../format/staging-key.ts";
import { isTextFileVersion } from "../format/text-file.ts";
import { readVersion } from "../format/version-files.ts";
import type { EngineFormat } from "./engine-format.ts";
import { encodeFragment, type RowFormat } from "./row-fragment.ts";
import type { StoredRow } from "./stored-row.ts";

/** A fragment that is not in a version yet, and has no id. */
export interface NewFragment {
  readonly fragment: DataFragment;
  /** The writing of its file, which may still be under way. */
  readonly written: Promise<unknown>;
}

/** Writes the rows of a new fragment to a data file of the manifest table, in the format that the table has. */
export type FragmentWriter = (
  base: ManifestFile,
  rows: readonly StoredRow[],
  format: RowFormat,
) => Promise<NewFragment>;

/**
 * Creates the writer of data files of a manifest table.
 *
 * Files of formats that are known here are written here. A file of a newer format is written by the engine, to a
 * dataset of its own that looks like the table without its rows, and moves to the table; so the commit stays one of
 * ours (docs/adr/0031).
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
