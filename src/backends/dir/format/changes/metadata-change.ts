import { create } from "@bufbuild/protobuf";
import { MAX_METADATA_ENTRIES } from "../../../../arrow/schema.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type {
  Transaction,
  Transaction_Project,
  Transaction_UpdateMap,
} from "../../../../gen/lance/format/transaction_pb.ts";
import {
  Transaction_ProjectSchema,
  Transaction_UpdateConfigSchema,
  Transaction_UpdateMapEntrySchema,
  Transaction_UpdateMapSchema,
} from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import { createFieldFinder, FLAG_TABLE_CONFIG, textOf } from "../files/manifest.ts";

/**
 * Most metadata that the schema and all fields may have together after a change, in bytes. The transaction, the version and the schema of each result
 * contain it, and nothing reads a schema of more than 16 MiB.
 */
const MAX_METADATA_LENGTH = 8 * 1024 * 1024;

/** A change of a map from text to text. */
export interface MapChange {
  /** Entries to set; null removes an entry. */
  readonly entries: Readonly<Record<string, string | null>>;
  /** Whether the entries replace all others. Default: false, the other entries remain. */
  readonly replace?: boolean;
}

/** A change of settings and metadata. */
export interface MetadataChange {
  /** Settings that change how libraries behave. */
  readonly config?: MapChange | undefined;
  /** Metadata of the table. */
  readonly tableMetadata?: MapChange | undefined;
  /** Metadata of the schema, which readers receive with the data. */
  readonly schemaMetadata?: MapChange | undefined;
  /** Metadata of fields, by field path; see {@link createFieldFinder}. */
  readonly fieldMetadata?: Readonly<Record<string, MapChange>> | undefined;
}

/**
 * Applies a change to a manifest in place, in steps, because a request may name thousands of fields.
 *
 * The steps return the operation for the transaction. They throw LanceError InvalidInput for a key with consequences beyond metadata and
 * for too much metadata, TableColumnNotFound.
 */
export function* applyChange(manifest: Manifest, change: MetadataChange): Steps<Transaction["operation"]> {
  const operation = create(Transaction_UpdateConfigSchema);
  const { config, tableMetadata, schemaMetadata, fieldMetadata } = change;
  const changesSchema = schemaMetadata !== undefined || fieldMetadata !== undefined;
  const before = changesSchema ? yield* metadataLength(manifest) : 0;
  if (config) {
    manifest.config = applyToMap(manifest.config, config);
    const otherFlags = manifest.writerFeatureFlags & ~FLAG_TABLE_CONFIG;
    const hasConfig = Object.keys(manifest.config).length > 0;
    manifest.writerFeatureFlags = otherFlags | (hasConfig ? FLAG_TABLE_CONFIG : 0n);
    operation.configUpdates = yield* toUpdateMap(config);
  }
  if (tableMetadata) {
    manifest.tableMetadata = applyToMap(manifest.tableMetadata, tableMetadata);
    operation.tableMetadataUpdates = yield* toUpdateMap(tableMetadata);
  }
  if (schemaMetadata) {
    manifest.schemaMetadata = yield* applyToBytes(
      manifest.schemaMetadata,
      schemaMetadata,
      isReservedInSchema,
    );
  }
  const findField = createFieldFinder(manifest);
  for (const [index, [path, fieldChange]] of Object.entries(fieldMetadata ?? {}).entries()) {
    if (index % ITEMS_PER_STEP === 0) yield;
    const field = findField(path);
    field.metadata = yield* applyToBytes(field.metadata, fieldChange, isReservedInField);
  }
  if (!changesSchema) return { case: "updateConfig", value: operation };
  checkMost("bytes", yield* metadataLength(manifest), before, MAX_METADATA_LENGTH);
  return { case: "project", value: projectionTo(manifest) };
}

/**
 * Returns the operation that records a change of metadata as a change of the schema. A writer of the engine that drops or
 * renames columns at the same moment then tries again. Over an UpdateConfig it would put the schema that it has read
 * before, without the metadata.
 */
function projectionTo({ fields }: Manifest): Transaction_Project {
  return create(Transaction_ProjectSchema, { schema: fields, preservesNullability: true });
}

function applyToMap(
  map: Readonly<Record<string, string>>,
  { entries, replace }: MapChange,
): Record<string, string> {
  const result = new Map(replace ? [] : Object.entries(map));
  for (const [key, value] of Object.entries(entries)) {
    if (value === null) result.delete(key);
    else result.set(key, value);
  }
  return Object.fromEntries(result);
}

function* applyToBytes(
  map: Readonly<Record<string, Uint8Array>>,
  { entries, replace = false }: MapChange,
  isReserved: (key: string, values: readonly (string | undefined)[]) => boolean,
): Steps<Record<string, Uint8Array>> {
  const result = new Map(Object.entries(map));
  const change = (key: string, value: string | undefined) => {
    const bytes = result.get(key);
    const before = bytes && textOf(bytes);
    // Unchanged values keep their bytes, which need not be text.
    if (value === before) return;
    if (isReserved(key, [before, value])) {
      throw new LanceError("InvalidInput", `the metadata key ${key} cannot be changed or removed`);
    }
    if (value === undefined) result.delete(key);
    else result.set(key, Buffer.from(value, "utf8"));
  };
  const dropped = replace ? Object.keys(map).filter((key) => !Object.hasOwn(entries, key)) : [];
  for (const key of dropped) change(key, undefined);
  for (const [index, [key, value]] of Object.entries(entries).entries()) {
    if (index % ITEMS_PER_STEP === 0) yield;
    change(key, value ?? undefined);
  }
  yield;
  checkMost("entries", result.size, Object.keys(map).length, MAX_METADATA_ENTRIES);
  return Object.fromEntries(result);
}

/** A table may have more from another writer, which may then be changed and removed. */
function checkMost(what: string, after: number, before: number, most: number): void {
  if (after <= Math.max(before, most)) return;
  throw new LanceError("InvalidInput", `metadata would have ${after} ${what}; the maximum is ${most}`);
}

/** Returns the length of the metadata of the schema and of all fields, in bytes. */
function* metadataLength({ schemaMetadata, fields }: Manifest): Steps<number> {
  let sum = lengthOf(schemaMetadata);
  for (const [index, { metadata }] of fields.entries()) {
    if (index % ITEMS_PER_STEP === 0) yield;
    sum += lengthOf(metadata);
  }
  return sum;
}

function lengthOf(map: Readonly<Record<string, Uint8Array>>): number {
  return Object.entries(map).reduce((sum, [key, { byteLength }]) => sum + key.length + byteLength, 0);
}

/** Whether a key switches the storage of blobs, which also needs feature flags. */
function isReservedInSchema(key: string): boolean {
  return key === "lance.blob.managed";
}

const RESERVED_IN_FIELD = ["lance-schema:", "lance-encoding:blob", "computed_column", "computed_refresh."];

/**
 * Primary and clustering keys are also fields of the manifest and have rules of their own. Keys that mark a column as a
 * blob or give it a Lance type decide how its files are read. The expression of a computed column must match the values
 * that were computed with it.
 */
function isReservedInField(key: string, values: readonly (string | undefined)[]): boolean {
  if (key === "ARROW:extension:name") return values.some((value) => value?.startsWith("lance."));
  return RESERVED_IN_FIELD.some((prefix) => key.startsWith(prefix));
}

function* toUpdateMap({ entries, replace = false }: MapChange): Steps<Transaction_UpdateMap> {
  const update = create(Transaction_UpdateMapSchema, { replace });
  for (const [index, [key, value]] of Object.entries(entries).entries()) {
    if (index % ITEMS_PER_STEP === 0) yield;
    const entry = value === null ? { key } : { key, value };
    update.updateEntries.push(create(Transaction_UpdateMapEntrySchema, entry));
  }
  return update;
}
