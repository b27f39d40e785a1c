import type { Field } from "../../../gen/lance/format/file_pb.ts";
import type { Manifest } from "../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";

/** What the fragments of a version add up to. */
export interface RowCounts {
  readonly fragments: number;
  /** Rows that can be read. */
  readonly rows: bigint;
  /** Rows in the files, deleted ones included. */
  readonly physicalRows: bigint;
  readonly deletedRows: bigint;
}

/** Adds up the fragments of a version. */
export function countRows(manifest: Manifest): RowCounts {
  let [physicalRows, deletedRows] = [0n, 0n];
  for (const fragment of manifest.fragments) {
    physicalRows += fragment.physicalRows;
    deletedRows += fragment.deletionFile?.numDeletedRows ?? 0n;
  }
  return {
    fragments: manifest.fragments.length,
    rows: physicalRows - deletedRows,
    physicalRows,
    deletedRows,
  };
}

/**
 * Returns the largest id that a fragment of a table has had; undefined for a table that has had none.
 *
 * Writers up to 0.38 leave a number out that is 0, and the number counts no less than the fragments that are there.
 */
export function largestFragmentId({ maxFragmentId, fragments }: Manifest): bigint | undefined {
  let largest = maxFragmentId === undefined ? undefined : BigInt(maxFragmentId);
  for (const { id } of fragments) if (largest === undefined || id > largest) largest = id;
  return largest;
}

/** Metadata as text; the format keeps that of schemas and fields as UTF-8 bytes. */
export function metadataText(metadata: Readonly<Record<string, Uint8Array>>): Record<string, string> {
  const entries = Object.entries(metadata).map(([key, value]) => [key, Buffer.from(value).toString("utf8")]);
  return Object.fromEntries(entries);
}

/** When a version was made, in milliseconds since 1970; `undefined` if it does not say. */
export function timestampMillis({ timestamp }: Manifest): number | undefined {
  return timestamp && Number(timestamp.seconds) * 1000 + Math.floor(timestamp.nanos / 1_000_000);
}

/**
 * Finds a field by its path: names joined with dots, a name with special characters in backticks, a backtick
 * inside of them doubled (contract 5.10).
 *
 * @throws LanceError TableColumnNotFound
 */
export function findField(manifest: Manifest, path: string): Field {
  const names = parseFieldPath(path);
  let found: Field | undefined;
  for (const name of names ?? []) {
    const parentId: number = found?.id ?? -1;
    found = manifest.fields.find((field) => field.parentId === parentId && field.name === name);
    if (!found) break;
  }
  if (!found) throw new LanceError("TableColumnNotFound", `there is no column ${path}`);
  return found;
}

/** The names in a field path; `undefined` if it has no valid form. */
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
 * Bits of both feature words, by what the release builds of Lance 14 know. The other bits below 18 are
 * reserved or unstable there: overlays (6), reuse of fragments with stable row ids (9), fragment trees (12),
 * independent covering fields (13), statistics seeds (16), object metadata (17).
 */
const KNOWN_FLAGS = [0, 1, 2, 3, 4, 5, 7, 8, 10, 11, 14, 15].reduce(
  (flags, bit) => flags | (1n << BigInt(bit)),
  0n,
);

/** The bits of both words that say that rows are deleted. */
export const FLAG_DELETION_FILES = 1n << 0n;

/** The bits that older writers set for the second data format, which no reader looks at. */
export const FLAG_V2_FORMAT = 1n << 2n;

/** The writer bit that says that the table has settings. */
export const FLAG_TABLE_CONFIG = 1n << 3n;

/** The writer bit that says that transactions are in the manifests only. */
export const FLAG_NO_TRANSACTION_FILES = 1n << 5n;

/** @throws LanceError Unsupported if the version needs something of its readers that is not known here */
export function checkReadable({ readerFeatureFlags }: Manifest): void {
  refuseUnknown("read", readerFeatureFlags);
}

/**
 * The fields of a manifest that are not in our contract and mean the same in every version after: the next stable row
 * id and the base paths. Any other may have to change with a version, or say where something is in the file.
 */
const CARRIED_FIELDS = new Set([14, 18]);

/** @throws LanceError Unsupported if the version needs something of its writers that is not known here */
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
