import type { Field } from "../../../../gen/lance/format/file_pb.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";

/** Row counts of a version, summed over its fragments. */
export interface RowCounts {
  readonly fragments: number;
  /** Number of rows that can be read. */
  readonly rows: bigint;
  /** Number of rows in the files, including deleted ones. */
  readonly physicalRows: bigint;
  readonly deletedRows: bigint;
}

/** Sums the rows of all fragments of a version. */
export function countRows({ fragments }: Pick<Manifest, "fragments">): RowCounts {
  let [physicalRows, deletedRows] = [0n, 0n];
  for (const fragment of fragments) {
    physicalRows += fragment.physicalRows;
    deletedRows += fragment.deletionFile?.numDeletedRows ?? 0n;
  }
  return {
    fragments: fragments.length,
    rows: physicalRows - deletedRows,
    physicalRows,
    deletedRows,
  };
}

/**
 * Returns what identifies some fields and their types; equal for columns that a data file knows by the same fields. Versions of
 * the format differ in what else they record about a field.
 */
export function columnFacts(fields: readonly Field[]) {
  return fields.map(({ id, parentId, name, logicalType, nullable }) => [
    id,
    parentId,
    name,
    logicalType,
    nullable,
  ]);
}

/**
 * Returns the largest fragment id that a table has had; undefined for a table without fragments so far.
 *
 * Writers up to 0.38 omit the number if it is 0, so the existing fragments raise it.
 */
export function largestFragmentId({ maxFragmentId, fragments }: Manifest): bigint | undefined {
  let largest = maxFragmentId === undefined ? undefined : BigInt(maxFragmentId);
  for (const { id } of fragments) if (largest === undefined || id > largest) largest = id;
  return largest;
}

/** Decodes metadata as text; the format stores that of schemas and fields as UTF-8 bytes. */
export function metadataText(metadata: Readonly<Record<string, Uint8Array>>): Record<string, string> {
  const entries = Object.entries(metadata).map(([key, value]) => [key, textOf(value)]);
  return Object.fromEntries(entries);
}

/** Decodes a value of metadata as text. */
export function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
}

/**
 * Finds a field by its path: names joined with dots, a name with special characters in backticks, a backtick inside
 * doubled (contract 5.10).
 *
 * @throws LanceError TableColumnNotFound
 */
export type FindField = (path: string) => Field;

/** Creates a search among the fields of a version; a request may name thousands of them. */
export function createFieldFinder({ fields }: Manifest): FindField {
  const keyOf = (parentId: number, name: string) => `${parentId}.${name}`;
  let byKey: ReadonlyMap<string, Field> | undefined;
  return (path) => {
    byKey ??= new Map(fields.toReversed().map((field) => [keyOf(field.parentId, field.name), field]));
    let found: Field | undefined;
    for (const name of parseFieldPath(path) ?? []) {
      found = byKey.get(keyOf(found?.id ?? -1, name));
      if (!found) break;
    }
    if (!found) throw new LanceError("TableColumnNotFound", `there is no column ${path}`);
    return found;
  };
}

/** Splits a field path into names; returns `undefined` if it is malformed. */
function parseFieldPath(path: string): string[] | undefined {
  const names: string[] = [];
  const segment = /(?:`((?:[^`]|``)+)`|([^.`]+))(\.|$)/y;
  while (segment.lastIndex < path.length) {
    const match = segment.exec(path);
    if (!match) return undefined;
    names.push(match[1]?.replaceAll("``", "`") ?? (match[2] as string));
    if (match[3] === "") return names;
  }
  return undefined;
}

/*
 * Known bits of both feature words, as in the release builds of Lance 14. The other bits below 18 are reserved or
 * unstable there: overlays (6), reuse of fragments with stable row ids (9), fragment trees (12), independent covering
 * fields (13), statistics seeds (16), object metadata (17).
 */
const KNOWN_FLAGS = [0, 1, 2, 3, 4, 5, 7, 8, 10, 11, 14, 15].reduce(
  (flags, bit) => flags | (1n << BigInt(bit)),
  0n,
);

/** Bits of both words: rows have been deleted. */
export const FLAG_DELETION_FILES = 1n << 0n;

/** Bits that older writers set for the second data format; readers ignore them. */
export const FLAG_V2_FORMAT = 1n << 2n;

/** Writer bit: the table has settings. */
export const FLAG_TABLE_CONFIG = 1n << 3n;

/** Writer bit: transactions are stored in the manifests only. */
export const FLAG_NO_TRANSACTION_FILES = 1n << 5n;

/** @throws LanceError Unsupported if the version requires an unknown feature of its readers */
export function checkReadable({ readerFeatureFlags }: Manifest): void {
  refuseUnknown("read", readerFeatureFlags);
}

/**
 * Fields of a manifest that are not in our contract and keep their meaning in every later version: the next stable row
 * id. Any other field may have to change with a version, or may contain a position in the file.
 */
const CARRIED_FIELDS = new Set([14]);

/** @throws LanceError Unsupported if the version requires an unknown feature of its writers */
export function checkWritable({ readerFeatureFlags, writerFeatureFlags, $unknown = [] }: Manifest): void {
  refuseUnknown("written", readerFeatureFlags | writerFeatureFlags);
  const field = $unknown.find(({ no }) => !CARRIED_FIELDS.has(no));
  if (field === undefined) return;
  throw new LanceError("Unsupported", `the table can only be written by newer software (field ${field.no})`);
}

function refuseUnknown(what: string, flags: bigint): void {
  const unknown = flags & ~KNOWN_FLAGS;
  if (unknown === 0n) return;
  throw new LanceError("Unsupported", `the table can only be ${what} by newer software (flags ${unknown})`);
}

/**
 * Returns a deep copy of a message, with its unknown fields. It shares bytes, which nobody writes into. protobuf-es's own `clone` goes through reflection, which
 * takes 20 times as long: 0.1 s for a manifest of 30,000 fields.
 */
export function copyMessage<T>(message: T): T {
  return copyOf(message) as T;
}

/** Copies a message as {@link copyMessage} does, in steps: a manifest may have a hundred thousand fragments. */
export function* copySteps<T extends object>(message: T): Steps<T> {
  const copy = Object.create(Object.getPrototypeOf(message));
  for (const [name, field] of Object.entries(message)) {
    copy[name] = Array.isArray(field) ? yield* copiesOf(field) : copyOf(field);
  }
  return copy;
}

function* copiesOf(items: readonly unknown[]): Steps<unknown[]> {
  const copies: unknown[] = [];
  for (let at = 0; at < items.length; at += ITEMS_PER_STEP) {
    if (at > 0) yield;
    for (const item of items.slice(at, at + ITEMS_PER_STEP)) copies.push(copyOf(item));
  }
  return copies;
}

function copyOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  // Messages whose fields know whether they are set have their defaults in a prototype.
  const copy = Object.create(Object.getPrototypeOf(value));
  for (const name of Object.keys(value)) {
    const field = copyOf((value as Record<string, unknown>)[name]);
    if (name === "__proto__") Object.defineProperty(copy, name, { ...WRITABLE, value: field });
    else copy[name] = field;
  }
  return copy;
}

/** How a map has the key `__proto__`, which an assignment would take for its prototype. */
const WRITABLE = { enumerable: true, configurable: true, writable: true } as const;

/** The type of a column whose large values are in files of their own. */
export const BLOB_TYPE = "lance.blob.v2";

/** The metadata key of the type that Arrow does not have. */
export const EXTENSION = "ARROW:extension:name";

const DATA_FILE = /\.lance$/;

/**
 * Returns the directories in which the engine keeps the blobs of data files: a directory beside each file, with its
 * name. A manifest does not list them, and those of a file with small blobs alone do not exist.
 *
 * @param keys keys of files, of which only data files count
 */
export function blobDirectories({ fields }: Manifest, keys: readonly string[]): string[] {
  const hasBlobs = fields.some(({ metadata }) => {
    const type = metadata[EXTENSION];
    return type !== undefined && Buffer.from(type).toString() === BLOB_TYPE;
  });
  return hasBlobs ? keys.filter((key) => DATA_FILE.test(key)).map((key) => key.replace(DATA_FILE, "")) : [];
}
