import { LanceError } from "../namespace/errors.ts";
import { atOnce, ITEMS_PER_STEP, type Steps } from "../runtime/pace.ts";
import {
  type FlatTable,
  readInt16,
  readInt32,
  readInt64,
  readString,
  readTable,
  readTables,
  readUint8,
  readVector,
} from "./ipc/flatbuffer.ts";
import { malformed, schemaTable } from "./ipc/message.ts";

/** A unit of time, in Arrow's numbering: seconds, milliseconds, microseconds, nanoseconds. */
export type TimeUnit = "s" | "ms" | "us" | "ns";

/** An Arrow type: its name and the parameters that belong to that name. */
export type ArrowType =
  | { readonly name: "int"; readonly bits: 8 | 16 | 32 | 64; readonly signed: boolean }
  | { readonly name: "float"; readonly bits: 16 | 32 | 64 }
  | {
      readonly name: "decimal";
      readonly bits: 32 | 64 | 128 | 256;
      readonly precision: number;
      readonly scale: number;
    }
  | { readonly name: "date"; readonly bits: 32 | 64 }
  | { readonly name: "time"; readonly bits: 32 | 64; readonly unit: TimeUnit }
  | { readonly name: "timestamp"; readonly unit: TimeUnit; readonly timezone: string | undefined }
  | { readonly name: "duration"; readonly unit: TimeUnit }
  | { readonly name: "interval"; readonly bits: 32 | 64 | 128 }
  | { readonly name: "fixed_size_binary"; readonly width: number }
  | { readonly name: "fixed_size_list"; readonly size: number }
  | { readonly name: "map"; readonly keysSorted: boolean }
  | { readonly name: PlainTypeName };

/** Types without parameters. */
export type PlainTypeName =
  | "null"
  | "bool"
  | "binary"
  | "utf8"
  | "large_binary"
  | "large_utf8"
  | "list"
  | "large_list"
  | "struct"
  | "binary_view"
  | "utf8_view";

/** Index of a dictionary-encoded field; the field's type is that of the values. */
export interface ArrowDictionary {
  readonly id: bigint;
  readonly index: Extract<ArrowType, { name: "int" }>;
  readonly ordered: boolean;
}

/** A field of an Arrow schema. */
export interface ArrowField {
  readonly name: string;
  readonly nullable: boolean;
  readonly type: ArrowType;
  readonly children: readonly ArrowField[];
  readonly dictionary: ArrowDictionary | undefined;
  readonly metadata: Readonly<Record<string, string>>;
}

/** An Arrow schema. */
export interface ArrowSchema {
  readonly fields: readonly ArrowField[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** Deepest nesting of fields that is read. */
const MAX_DEPTH = 64;

/**
 * Maximum number of tables in the schema of an upload: a column takes two, an entry of its metadata another. Decoding
 * that many takes about 50 ms.
 */
export const MAX_UPLOAD_TABLES = 65_536;

/**
 * Maximum number of entries in the metadata of a schema or of a field that a client writes. Each commit decodes, copies and encodes all
 * of them, which takes 0.1 s for 60,000.
 */
export const MAX_METADATA_ENTRIES = 10_000;

/**
 * Decodes the metadata of a schema message.
 *
 * @throws LanceError InvalidInput, if it is malformed or has a type that Lance cannot store.
 */
export function decodeSchema(metadata: Uint8Array): ArrowSchema {
  return atOnce(schemaSteps(() => schemaTable(metadata)));
}

/** Decodes the schema message of an upload in steps, within the bounds of uploads. They throw LanceError InvalidInput. */
export function uploadSchemaSteps(metadata: Uint8Array): Steps<ArrowSchema> {
  return schemaSteps(() => schemaTable(metadata, MAX_UPLOAD_TABLES), MAX_METADATA_ENTRIES);
}

/**
 * Decodes the table of a schema in steps, wherever it is. They throw LanceError InvalidInput.
 *
 * @param maxEntries how many entries its metadata and that of a field may have. Default: any number.
 */
export function* schemaSteps(
  find: () => FlatTable,
  maxEntries: number = Number.POSITIVE_INFINITY,
): Steps<ArrowSchema> {
  try {
    const table = find();
    if (readInt16(table, 0) !== 0) throw new RangeError("it is big-endian");
    // A schema without columns has an empty list; without a list the engine panics.
    if (readVector(table, 1).at === 0) throw new RangeError("it has no list of fields");
    const fields: ArrowField[] = [];
    for (const field of readTables(table, 1)) {
      fields.push(decodeField(field, 0, maxEntries));
      if (fields.length % ITEMS_PER_STEP === 0) yield;
    }
    return { fields, metadata: decodeMetadata(table, 2, maxEntries) };
  } catch (error) {
    if (error instanceof RangeError) throw malformed(0, `the schema is broken: ${error.message}`);
    throw error;
  }
}

function decodeField(table: FlatTable, depth: number, maxEntries: number): ArrowField {
  if (depth > MAX_DEPTH) throw new RangeError(`fields are nested deeper than ${MAX_DEPTH}`);
  const name = readString(table, 0);
  if (name === undefined) throw new RangeError("a field has no name");
  const dictionary = readTable(table, 4);
  const type = typeOf(name, table);
  const children = readTables(table, 5).map((child) => decodeField(child, depth + 1, maxEntries));
  checkChildren(name, type, children);
  return {
    name,
    nullable: readUint8(table, 1) !== 0,
    type,
    children,
    dictionary: dictionary && {
      id: readInt64(dictionary, 0),
      index: indexType(readTable(dictionary, 1)),
      ordered: readUint8(dictionary, 2) !== 0,
    },
    metadata: decodeMetadata(table, 6, maxEntries),
  };
}

/** Types that Lance does not have, by their number in the union of types. */
const UNSTORABLE: Readonly<Record<number, string>> = {
  14: "union",
  22: "run_end_encoded",
  25: "list_view",
  26: "large_list_view",
};

/** @throws LanceError InvalidInput for a type that Lance does not have; RangeError for a broken one */
function typeOf(name: string, table: FlatTable): ArrowType {
  const code = readUint8(table, 2);
  const unstorable = UNSTORABLE[code];
  if (unstorable !== undefined)
    throw new LanceError(
      "InvalidInput",
      `column ${JSON.stringify(name)} is a ${unstorable}, a type that Lance cannot store`,
    );
  try {
    return decodeType(code, readTable(table, 3));
  } catch (error) {
    throw error instanceof RangeError
      ? new RangeError(`in column ${JSON.stringify(name)}, ${error.message}`)
      : error;
  }
}

/** Checks the number of a type's children, which the engine trusts. */
function checkChildren(name: string, type: ArrowType, children: readonly ArrowField[]): void {
  const [first, ...others] = children;
  switch (type.name) {
    case "struct":
      return;
    case "map":
      if (others.length === 0 && first?.type.name === "struct" && first.children.length === 2) return;
      break;
    case "list":
    case "large_list":
    case "fixed_size_list":
      if (others.length === 0 && first !== undefined) return;
      break;
    default:
      if (first === undefined) return;
  }
  throw new RangeError(`field ${JSON.stringify(name)} has the wrong children for ${type.name}`);
}

function decodeMetadata(table: FlatTable, index: number, maxEntries: number): Record<string, string> {
  if (readVector(table, index).length > maxEntries) {
    throw new RangeError(`its metadata or that of a field has more than ${maxEntries} entries`);
  }
  const entries = readTables(table, index);
  if (entries.length === 0) return {};
  return Object.fromEntries(entries.map((entry) => [readString(entry, 0) ?? "", readString(entry, 1) ?? ""]));
}

const UNITS = ["s", "ms", "us", "ns"] as const;

/** Types without parameters, by their number in the union of types. */
const PLAIN: Readonly<Record<number, PlainTypeName>> = {
  1: "null",
  4: "binary",
  5: "utf8",
  6: "bool",
  12: "list",
  13: "struct",
  19: "large_binary",
  20: "large_utf8",
  21: "large_list",
  23: "binary_view",
  24: "utf8_view",
};

function decodeType(code: number, table: FlatTable | undefined): ArrowType {
  const plain = PLAIN[code];
  if (plain !== undefined) return { name: plain };
  if (table === undefined) throw new RangeError(`type ${code} lacks its parameters`);
  const unit = (fallback: number): TimeUnit => oneOf(UNITS, readInt16(table, 0, fallback));
  switch (code) {
    case 2:
      return intType(table);
    case 3:
      return { name: "float", bits: oneOf([16, 32, 64] as const, readInt16(table, 0)) };
    case 7:
      return decimalType(table);
    case 8:
      return { name: "date", bits: oneOf([32, 64] as const, readInt16(table, 0, 1)) };
    case 9:
      return timeType(bits([32, 64] as const, readInt32(table, 1, 32)), unit(1));
    case 10:
      return { name: "timestamp", unit: unit(0), timezone: readString(table, 1) };
    case 11:
      return { name: "interval", bits: oneOf([32, 64, 128] as const, readInt16(table, 0)) };
    case 15:
      return { name: "fixed_size_binary", width: positive(readInt32(table, 0)) };
    case 16:
      return { name: "fixed_size_list", size: positive(readInt32(table, 0)) };
    case 17:
      return { name: "map", keysSorted: readUint8(table, 0) !== 0 };
    case 18:
      return { name: "duration", unit: unit(1) };
    default:
      throw new RangeError(`type ${code} is not supported`);
  }
}

/** The format has a default for a missing type of indices; the engine does not. */
function indexType(table: FlatTable | undefined): Extract<ArrowType, { name: "int" }> {
  if (table === undefined) throw new RangeError("a dictionary has indices of no type");
  return intType(table);
}

function timeType(width: 32 | 64, unit: TimeUnit): ArrowType {
  if ((unit === "s" || unit === "ms") !== (width === 32)) {
    throw new RangeError(`a time in ${unit} cannot have ${width} bits`);
  }
  return { name: "time", bits: width, unit };
}

function intType(table: FlatTable): Extract<ArrowType, { name: "int" }> {
  const width = bits([8, 16, 32, 64] as const, readInt32(table, 0));
  return { name: "int", bits: width, signed: readUint8(table, 1) !== 0 };
}

function decimalType(table: FlatTable): ArrowType {
  const width = bits([32, 64, 128, 256] as const, readInt32(table, 2, 128));
  const precision = positive(readInt32(table, 0));
  const scale = readInt32(table, 1);
  if (precision > 76 || Math.abs(scale) > 76) throw new RangeError("a decimal is out of range");
  return { name: "decimal", bits: width, precision, scale };
}

function oneOf<T>(values: readonly T[], index: number): T {
  const value = values[index];
  if (value === undefined) throw new RangeError(`unit ${index} is unknown`);
  return value;
}

function bits<T extends number>(allowed: readonly T[], value: number): T {
  const width = allowed.find((each) => each === value);
  if (width === undefined) throw new RangeError(`a width of ${value} bits is not supported`);
  return width;
}

function positive(value: number): number {
  if (value < 0) throw new RangeError(`${value} is no size`);
  return value;
}
