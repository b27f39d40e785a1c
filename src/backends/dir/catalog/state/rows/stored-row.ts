import { type Row, VIEW_KIND } from "../row.ts";

/** Address of a row in the manifest's dataset: a fragment, and the place among the fragment's physical rows. */
export interface RowAddress {
  readonly fragment: number;
  readonly offset: number;
}

/** A stored row and its address. */
export interface PlacedRow extends RowAddress {
  readonly objectId: string;
  readonly objectType: string;
  readonly location: string | undefined;
  /** Text of the column, which may be any JSON. */
  readonly metadata: string | undefined;
}

/** A row in its stored form, without its address. */
export type StoredRow = Omit<PlacedRow, keyof RowAddress>;

/** Columns of rows, in the order of the public schema. */
export const COLUMNS = {
  object_id: (row: StoredRow) => row.objectId,
  // Pylance refuses all changes of a catalog that has rows of another kind than these two.
  object_type: (row: StoredRow) => (row.objectType === VIEW_KIND ? "namespace" : row.objectType),
  location: (row: StoredRow) => row.location,
  metadata: (row: StoredRow) => row.metadata,
} as const;

/** Converts a row to its stored form. */
export function toStored({ objectId, objectType, location, properties }: Row): StoredRow {
  return { objectId, objectType, location, metadata: propertiesText(properties) ?? undefined };
}

/** A column of texts in Arrow's layout: value `i` is the UTF-8 bytes from `offsets[i]` to `offsets[i + 1]`. */
export interface TextColumn {
  readonly bytes: Uint8Array;
  readonly offsets: Int32Array;
  isNull(index: number): boolean;
}

/** Rows by column, in the form that the state reads. */
export interface RowBatch {
  readonly length: number;
  readonly objectId: TextColumn;
  readonly objectType: TextColumn;
  readonly location: TextColumn;
  /** Properties as a JSON object. */
  readonly metadata: TextColumn;
  /** Offset and fragment of each row, in this order; undefined if the places are not known. */
  readonly addresses: Uint32Array | undefined;
}

/** Differences between a state and a later version of the manifest. */
export interface Delta {
  /** Fragments whose rows have all lost their places: removed, or rewritten. */
  readonly lostFragments: ReadonlySet<number>;
  /** Remaining rows of each fragment where rows were deleted: 1 at the offset of each. */
  readonly remaining: ReadonlyMap<number, Uint8Array>;
  /** Rows of new and rewritten fragments, with their addresses. */
  readonly added: readonly RowBatch[];
}

/** Number of an unknown fragment. */
export const NO_FRAGMENT = 0xffff_ffff;

/** Lays out rows by column. */
export function toBatch(rows: readonly Row[], addresses?: Uint32Array): RowBatch {
  return {
    length: rows.length,
    objectId: textColumn(rows.map((row) => row.objectId)),
    objectType: textColumn(rows.map((row) => row.objectType)),
    location: textColumn(rows.map((row) => row.location)),
    metadata: textColumn(rows.map((row) => propertiesText(row.properties))),
    addresses,
  };
}

/** Lays out texts as a column. */
export function textColumn(texts: readonly (string | null | undefined)[]): TextColumn {
  const offsets = new Int32Array(texts.length + 1);
  // Halves of characters must not combine with those of a neighbour.
  const whole = texts.map((text) => text?.toWellFormed() ?? "");
  for (const [i, text] of whole.entries()) offsets[i + 1] = (offsets[i] as number) + Buffer.byteLength(text);
  return {
    bytes: Buffer.from(whole.join("")),
    offsets,
    isNull: (index) => texts[index] === null || texts[index] === undefined,
  };
}

/** Serializes properties for the manifest; returns null if there are none. */
export function propertiesText(properties: Readonly<Record<string, string>>): string | null {
  for (const _ in properties) return JSON.stringify(properties);
  return null;
}

/** Parses properties. Other writers may keep other JSON in the column; only entries with text values are properties. */
export function parseProperties(text: string): Record<string, string> {
  try {
    const entries = Object.entries(JSON.parse(text) as object);
    return Object.fromEntries(entries.filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}
