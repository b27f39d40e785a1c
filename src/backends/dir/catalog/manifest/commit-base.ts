import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { Field } from "../../../../gen/lance/format/file_pb.ts";
import {
  type DataFragment,
  DataFragmentSchema,
  type Manifest,
} from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { atOnce } from "../../../../runtime/pace.ts";
import { takesStagedRows } from "../../format/changes/staged-rows.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import {
  compareFormats,
  encodeTextFile,
  isTextFileVersion,
  type TextFileVersion,
} from "../../format/files/text-file.ts";
import { createDraft } from "../state/draft.ts";
import { growthOf } from "../state/properties-size.ts";
import { COLUMNS, type PlacedRow, type RowAddress, type StoredRow } from "../state/rows/stored-row.ts";
import type { CatalogState } from "../state/state.ts";
import type { CatalogView, Changes, Verdict } from "../state/view.ts";

/** Format of rows in a manifest table. */
export interface RowFormat {
  readonly version: string;
  /** Fields of {@link COLUMNS}, in that order. */
  readonly fields: readonly Field[];
  /** Other columns of the table. */
  readonly otherColumns: readonly Field[];
}

/**
 * Determines the format of rows for a manifest table.
 *
 * Writes omit columns that are unknown here, which are null in the new rows.
 *
 * @throws LanceError Unsupported if the table requires an unknown feature of its writers
 */
export function rowFormatOf(manifest: Manifest): RowFormat {
  const version = manifest.dataFormat?.version ?? "";
  const columns = manifest.fields.filter(({ parentId }) => parentId === -1);
  const fields = Object.keys(COLUMNS).map((name) => columns.find((field) => field.name === name));
  const otherColumns = columns.filter((field) => !fields.includes(field));
  if (!takesStagedRows(manifest) || !(isTextFileVersion(version) || isNewerFormat(version))) {
    throw cannotWrite(`its features are ${manifest.writerFeatureFlags}, its data format is ${version}`);
  }
  const needed = otherColumns.find(({ nullable }) => !nullable);
  if (needed !== undefined) throw cannotWrite(`its column ${needed.name} may not be empty`);
  if (!fields.every((field) => field?.logicalType === "string")) {
    throw cannotWrite("it has not the columns of a catalog");
  }
  return { version, fields: fields as Field[], otherColumns };
}

/** Whether a data format is newer than those that are written here; the engine may know it. */
function isNewerFormat(version: string): boolean {
  return /^\d{1,4}\.\d{1,4}$/.test(version) && compareFormats(version, "2.2") > 0;
}

function cannotWrite(why: string): LanceError {
  return new LanceError("Unsupported", `the catalog cannot be written by this version: ${why}`);
}

/** Returns the name of a plain fragment's file, which is unique. */
export function fileNameOf({ files }: DataFragment): string {
  return files[0]?.path ?? "";
}

/** Encodes a data file of some rows, and describes its fragment, which has no id yet. */
export function encodeFragment(
  rows: readonly StoredRow[],
  { version, fields }: RowFormat & { readonly version: TextFileVersion },
): { readonly name: string; readonly bytes: Uint8Array; readonly fragment: DataFragment } {
  const values = Object.values(COLUMNS);
  const columns = fields.map((field, i) => ({
    field,
    texts: rows.map(values[i] as (row: StoredRow) => string | undefined),
  }));
  const bytes = encodeTextFile(columns, rows.length, version);
  const name = `${randomUUID()}.lance`;
  const [major, minor] = version.split(".").map(Number);
  const file = {
    path: name,
    fields: fields.map(({ id }) => id),
    columnIndices: fields.map((_, i) => i),
    fileMajorVersion: major as number,
    fileMinorVersion: minor as number,
    fileSizeBytes: BigInt(bytes.byteLength),
  };
  const fragment = create(DataFragmentSchema, { files: [file], physicalRows: BigInt(rows.length) });
  return { name, bytes, fragment };
}

/** Whether a rewrite of a fragment's rows loses nothing: it has only known columns, and no other unknown parts. */
export function isPlainFragment({ files, $unknown = [] }: DataFragment, { fields }: RowFormat): boolean {
  const [file] = files;
  if (file === undefined || files.length > 1 || $unknown.length > 0 || file.$unknown?.length) return false;
  return file.fields.every((id) => fields.some((field) => field.id === id));
}

/** The part of a state from which a commit is decided and planned. */
export type BaseState = CatalogView &
  Pick<
    CatalogState,
    "addressesOf" | "duplicates" | "propertiesBytes" | "remainingIn" | "revision" | "rowsIn"
  >;

/** A version on which a commit is based. */
export interface CommitBase {
  readonly version: number;
  readonly state: BaseState;
  /** Revision of the state at which it is that of the version. Default: any that it has when work on it begins. */
  readonly revision?: number;
  /** The manifest of a version that is still being published. Default: the version is stored. */
  readonly file?: ManifestFile;
}

/** Effect of a commit on the state before it. */
export interface AppliedCommit {
  readonly changes: Changes;
  readonly recorded: ReadonlyMap<string, Verdict>;
  /** Rows of the new fragment, in order: those that are put, and those that are moved. */
  readonly rows: readonly StoredRow[];
  /** Addresses of these rows. */
  readonly addresses: ReadonlyMap<string, RowAddress>;
}

/**
 * Returns the state after a commit that may still fail. It remains right when the commit has been applied to the
 * underlying state, which has no duplicate ids.
 */
export function stateAfter(state: CatalogState, commit: AppliedCommit): BaseState {
  const { changes, recorded, rows, addresses } = commit;
  const draft = createDraft(state);
  // Counted here: the underlying state gets the changes later.
  const propertiesBytes = state.propertiesBytes + atOnce(growthOf(state, changes));
  for (const [objectId, row] of changes) {
    if (row === undefined) draft.delete(objectId);
    else draft.put(row);
  }
  for (const [changeId, verdict] of recorded) draft.record(changeId, verdict);
  const hasMoved = (objectId: string) => changes.has(objectId) || addresses.has(objectId);
  const placed = rows.map((row): PlacedRow => ({ ...row, ...(addresses.get(row.objectId) as RowAddress) }));
  return {
    ...draft,
    propertiesBytes,
    get revision() {
      return state.revision;
    },
    get duplicates() {
      return state.duplicates;
    },
    addressesOf(objectId) {
      const address = addresses.get(objectId);
      if (address !== undefined) return [address];
      return changes.has(objectId) ? undefined : state.addressesOf(objectId);
    },
    *rowsIn(fragments) {
      for (const row of state.rowsIn(fragments)) if (!hasMoved(row.objectId)) yield row;
      for (const row of placed) if (fragments.has(row.fragment)) yield row;
    },
    remainingIn(fragment, physicalRows) {
      const remaining = state.remainingIn(fragment, physicalRows);
      for (const objectId of [...changes.keys(), ...addresses.keys()])
        for (const before of state.addressesOf(objectId) ?? [])
          if (before.fragment === fragment) remaining[before.offset] = 0;
      for (const row of placed) if (row.fragment === fragment) remaining[row.offset] = 1;
      return remaining;
    },
  };
}

/**
 * Returns a condition that finds the rows that would lose values in a commit: the commit rewrites them without the
 * columns that are unknown here, in which other writers may have put values.
 *
 * @returns undefined if there cannot be any
 */
export function foreignValues(manifest: Manifest, state: BaseState, changes: Changes): string | undefined {
  const format = rowFormatOf(manifest);
  if (format.otherColumns.length === 0) return undefined;
  const plain = new Set(
    manifest.fragments.filter((fragment) => isPlainFragment(fragment, format)).map(({ id }) => Number(id)),
  );
  const ids = rewrittenIds(state, changes).filter((id) =>
    state.addressesOf(id)?.some(({ fragment }) => !plain.has(fragment)),
  );
  if (ids.length === 0) return undefined;
  const values = format.otherColumns.map(({ name }) => `\`${name}\` IS NOT NULL`);
  return `object_id IN (${ids.map(quoted).join(", ")}) AND (${values.join(" OR ")})`;
}

/** Returns the ids of rows that remain in another form: replaced, or renamed with the directory that they keep. */
export function rewrittenIds(state: CatalogView, changes: Changes): string[] {
  const locations = new Set<string>();
  for (const row of changes.values()) if (row?.location !== undefined) locations.add(row.location);
  const ids: string[] = [];
  for (const [id, row] of changes) {
    const before = state.get(id);
    if (before === undefined) continue;
    if (row !== undefined || locations.has(before.location ?? "")) ids.push(id);
  }
  return ids;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
