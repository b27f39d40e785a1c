import type { Row } from "./row.ts";

/** A column of texts as Arrow lays it out: value `i` is the UTF-8 bytes from `offsets[i]` to `offsets[i + 1]`. */
export interface TextColumn {
  readonly bytes: Uint8Array;
  readonly offsets: Int32Array;
  isNull(index: number): boolean;
}

/** Rows by column, as the state takes them in. */
export interface RowBatch {
  readonly length: number;
  readonly objectId: TextColumn;
  readonly objectType: TextColumn;
  readonly location: TextColumn;
  /** The properties as a JSON object. */
  readonly metadata: TextColumn;
  /** For each row the offset in its fragment and the fragment; undefined when the places are not known. */
  readonly addresses: Uint32Array | undefined;
}

/** What a later version of the manifest has that a state has not. */
export interface Delta {
  /** The fragments whose rows are all gone from their places: removed, or written anew. */
  readonly lostFragments: ReadonlySet<number>;
  /** For each fragment where rows were deleted which rows are left: 1 at the offset of each. */
  readonly remaining: ReadonlyMap<number, Uint8Array>;
  /** The rows of new fragments and of those written anew, with their addresses. */
  readonly added: readonly RowBatch[];
}

/** Stands for a fragment that is not known. */
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
  // Halves of characters must not join with those of a neighbour.
  const whole = texts.map((text) => text?.toWellFormed() ?? "");
  for (const [i, text] of whole.entries()) offsets[i + 1] = (offsets[i] as number) + Buffer.byteLength(text);
  return {
    bytes: Buffer.from(whole.join("")),
    offsets,
    isNull: (index) => texts[index] === null || texts[index] === undefined,
  };
}

/** The form of properties in the manifest; null when there are none. */
export function propertiesText(properties: Readonly<Record<string, string>>): string | null {
  for (const _ in properties) return JSON.stringify(properties);
  return null;
}

/** Reads properties. Other writers may keep other JSON in the column; only entries of text are properties. */
export function parseProperties(text: string): Record<string, string> {
  try {
    const entries = Object.entries(JSON.parse(text) as object);
    return Object.fromEntries(entries.filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}
