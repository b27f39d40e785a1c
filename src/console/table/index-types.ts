import type { TypeDescription } from "../../client/rows/type-words.ts";
import type { JsonArrowField, JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";

/** Kinds of columns, as indices distinguish them. */
type ColumnKind = "text" | "large text" | "whole" | "flag" | "plain" | "list" | "texts" | "vector";

/** A type of index. */
export interface IndexType {
  readonly name: string;
  /** What it is for, in words. */
  readonly purpose: string;
  /** Columns that it can index. */
  readonly of: readonly ColumnKind[];
}

/** Types of indices, the usual one of each kind of column first. */
const TYPES: readonly IndexType[] = [
  { name: "FTS", purpose: "searches for words", of: ["text", "large text", "texts"] },
  { name: "BTREE", purpose: "equal values and ranges", of: ["whole", "flag", "plain", "text"] },
  { name: "BITMAP", purpose: "few different values", of: ["whole", "flag", "text", "large text"] },
  { name: "LABEL_LIST", purpose: "lists that contain a value", of: ["list", "texts"] },
  { name: "NGRAM", purpose: "parts of words", of: ["text", "large text"] },
  { name: "FM", purpose: "any part of a text", of: ["text", "large text"] },
  {
    name: "ZONEMAP",
    purpose: "ranges, in little space",
    of: ["whole", "flag", "plain", "text", "large text"],
  },
  {
    name: "BLOOMFILTER",
    purpose: "equal values, in little space",
    of: ["whole", "plain", "text", "large text"],
  },
  { name: "IVF_PQ", purpose: "many vectors, in little space", of: ["vector"] },
  { name: "IVF_FLAT", purpose: "exact distances", of: ["vector"] },
  { name: "IVF_RQ", purpose: "many vectors, in the least space", of: ["vector"] },
  { name: "IVF_HNSW_SQ", purpose: "fast and close to exact", of: ["vector"] },
  { name: "IVF_HNSW_PQ", purpose: "fast, in little space", of: ["vector"] },
];

/** Types that CreateTableScalarIndex builds; CreateTableIndex builds the others. */
const SCALAR: ReadonlySet<string> = new Set(
  TYPES.flatMap(({ name, of }) => (name === "FTS" || of.includes("vector") ? [] : [name])),
);

/** Whether an index is for plain values, neither for vectors nor for words. */
export function isScalarIndex(type: string): boolean {
  return SCALAR.has(type);
}

/** A column that can have an index. */
export interface IndexableColumn {
  /** Path of the field, as requests name it. */
  readonly path: string;
  /** Types of indices that it can have, the usual one first. */
  readonly types: readonly IndexType[];
  readonly isVector: boolean;
}

/** Returns the columns of a table that can have an index, those inside groups included. */
export function indexableColumns(schema: JsonArrowSchema | undefined): readonly IndexableColumn[] {
  return (schema?.fields ?? []).flatMap((field) => columnsOf(field, ""));
}

/** Returns a field's name as requests have it: an odd one stands between backticks. */
export function fieldPath(name: string): string {
  return /^\w+$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}

function columnsOf({ name, type }: JsonArrowField, before: string): readonly IndexableColumn[] {
  if (type === undefined) return [];
  const path = before + fieldPath(name);
  if (type.type === "struct") return type.fields.flatMap((field) => columnsOf(field, `${path}.`));
  const kind = kindOf(type);
  if (kind === undefined) return [];
  const types = TYPES.filter(({ of }) => of.includes(kind));
  return [{ path, types, isVector: kind === "vector" }];
}

/** Kinds of columns by their types. */
const KINDS: readonly (readonly [RegExp, ColumnKind])[] = [
  [/^(?:utf8|string)$/, "text"],
  [/^large_(?:utf8|string)$/, "large text"],
  [/^u?int\d+$/, "whole"],
  [/^bool(?:ean)?$/, "flag"],
  [/^(?:float\d*|double|date\d+|time(?:\d+|stamp)?)(?::|$)/, "plain"],
];

function kindOf({ type, logicalType, fields: [inner] }: TypeDescription): ColumnKind | undefined {
  if (type === "fixed_size_list") return VECTOR.test(inner?.type?.type ?? "") ? "vector" : undefined;
  if (type === "list" || type === "large_list") return LISTS[(inner?.type && kindOf(inner.type)) ?? ""];
  return KINDS.find(([types]) => types.test(type) || types.test(logicalType ?? ""))?.[1];
}

/** Items of vectors. */
const VECTOR = /^(?:float\d*|double|u?int8)$/;

/** Kinds of lists by the kind of their items. */
const LISTS: Readonly<Record<string, ColumnKind>> = { text: "texts", whole: "list" };
