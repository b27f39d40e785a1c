import { type Column, flag, int32, type Row, text } from "./answer-rows.ts";

/** Columns of the facts about types. */
export const TYPE_COLUMNS: readonly Column[] = [
  ...[text("type_name"), int32("data_type"), int32("column_size", true)],
  ...[text("literal_prefix", true), text("literal_suffix", true)],
  {
    name: "create_params",
    nullable: true,
    type: ({ List, Field, Utf8 }) => new List(new Field("item", new Utf8(), false)),
  },
  ...[int32("nullable"), flag("case_sensitive"), int32("searchable"), flag("unsigned_attribute", true)],
  ...[flag("fixed_prec_scale"), flag("auto_increment", true), text("local_type_name", true)],
  ...[int32("minimum_scale", true), int32("maximum_scale", true), int32("sql_data_type")],
  ...[int32("datetime_subcode", true), int32("num_prec_radix", true), int32("interval_precision", true)],
];

/** A type of SQL. */
interface TypeFacts {
  readonly name: string;
  /** Its number in XDBC. */
  readonly code: number;
  /** Digits of a number, bits of an approximate one, or characters of a time. */
  readonly size?: number;
  /** Radix of the size of a number. */
  readonly radix?: 2 | 10;
  /** How a literal begins; each ends with a quote. */
  readonly prefix?: string;
  readonly parameters?: readonly string[];
  readonly scales?: readonly [number, number];
  /** Part of the code of dates and times. */
  readonly subcode?: number;
  readonly unsigned?: boolean;
}

/** The types that columns of tables have in SQL, ordered by code and name. */
const TYPES: readonly TypeFacts[] = [
  { name: "BOOLEAN", code: -7 },
  { name: "TINYINT", code: -6, size: 3, radix: 10 },
  { name: "UTINYINT", code: -6, size: 3, radix: 10, unsigned: true },
  { name: "BIGINT", code: -5, size: 19, radix: 10 },
  { name: "UBIGINT", code: -5, size: 20, radix: 10, unsigned: true },
  { name: "BLOB", code: -3, prefix: "'" },
  {
    ...{ name: "DECIMAL", code: 3, size: 38, radix: 10, scales: [0, 38] },
    parameters: ["precision", "scale"],
  },
  { name: "INTEGER", code: 4, size: 10, radix: 10 },
  { name: "UINTEGER", code: 4, size: 10, radix: 10, unsigned: true },
  { name: "SMALLINT", code: 5, size: 5, radix: 10 },
  { name: "USMALLINT", code: 5, size: 5, radix: 10, unsigned: true },
  { name: "FLOAT", code: 7, size: 24, radix: 2 },
  { name: "DOUBLE", code: 8, size: 53, radix: 2 },
  { name: "VARCHAR", code: 12, prefix: "'" },
  { name: "DATE", code: 91, size: 10, prefix: "DATE '", subcode: 1 },
  { name: "TIME", code: 92, size: 15, prefix: "TIME '", subcode: 2, scales: [6, 6] },
  { name: "TIMESTAMP", code: 93, size: 26, prefix: "TIMESTAMP '", subcode: 3, scales: [6, 6] },
  {
    ...{ name: "TIMESTAMP WITH TIME ZONE", code: 93, size: 32, prefix: "TIMESTAMPTZ '" },
    ...{ subcode: 5, scales: [6, 6] },
  },
];

/** Number of the generic type of dates and times. */
const DATETIME = 9;

const NULLABLE = 1;

/** Conditions that a type can be in: all, or all but LIKE. */
const SEARCHABLE_FULL = 3;
const SEARCHABLE_BASIC = 2;

/** Lists the types, or those with a number. */
export function* typeRows(code: number | undefined): Iterable<Row> {
  for (const type of TYPES) if (code === undefined || code === type.code) yield rowOf(type);
}

function rowOf({ name, code, size, radix, prefix, parameters, scales, subcode, unsigned }: TypeFacts): Row {
  const isText = name === "VARCHAR";
  const isNumber = radix !== undefined;
  return [
    ...[name, code, size, prefix, prefix && "'", parameters, NULLABLE, isText],
    ...[isText ? SEARCHABLE_FULL : SEARCHABLE_BASIC, isNumber ? unsigned === true : undefined],
    ...[false, isNumber ? false : undefined, undefined, scales?.[0], scales?.[1]],
    ...[subcode === undefined ? code : DATETIME, subcode, radix, undefined],
  ];
}
