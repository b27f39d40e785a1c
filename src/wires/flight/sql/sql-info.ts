import type { Data, DataType } from "apache-arrow";
import { HANDLE_MS } from "../tickets.ts";
import { type Arrow, type Column, flag, int32, type Row, schemaMessageOf, text } from "./answer-rows.ts";

/** Facts about the gateway. */
export interface ServerFacts {
  readonly version: string;
  /** Whether everything that writes is refused. */
  readonly isReadOnly: boolean;
}

/** The facts that the gateway tells, by their public numbers. A bigint is one of 64 bits, and a number one of 32 bits. */
function factsOf({
  version,
  isReadOnly,
}: ServerFacts): ReadonlyMap<number, string | boolean | bigint | number> {
  return new Map<number, string | boolean | bigint | number>([
    [0, "Lance Gateway"],
    [1, version],
    // Version of the Arrow format.
    [2, "1.5"],
    [3, isReadOnly],
    // SQL, and no Substrait.
    [4, true],
    [5, false],
    // Transactions, and the action CancelQuery.
    [8, 0],
    [9, false],
    // Ingest, and without transactions.
    [10, !isReadOnly],
    [11, false],
    // Time of a prepared statement in milliseconds.
    [100, HANDLE_MS],
    // Statements that create or drop catalogs, schemas and tables.
    [500, false],
    [501, false],
    [502, !isReadOnly],
    [504, '"'],
    // Whether all tables are readable: some types have no type in SQL.
    [506, false],
    // Nulls sort at the end.
    [507, 3],
    [513, "\\"],
    // Aliases of columns and tables; NULL || text is NULL.
    [515, true],
    [516, true],
    [518, true],
    [519, false],
    // ORDER BY expressions and unselected columns; GROUP BY both unrelated and beyond the selected columns.
    [520, true],
    [521, true],
    [522, 0b11],
    [523, true],
    [524, false],
    // All outer joins.
    [528, 2],
    [529, "namespace"],
    [531, "database"],
    [532, true],
    [536, false],
    [537, false],
    // Subqueries in comparisons, EXISTS, IN and quantified; also correlated; UNION and UNION ALL.
    [538, 0b1111],
    [539, true],
    [540, 0b11],
    // Longest statement in bytes, and tables of a statement.
    [557, 262_144n],
    [560, 64n],
    [563, false],
    [572, false],
    [573, false],
    [574, false],
    [575, false],
    [576, false],
  ]);
}

/** Returns the schema message of the answer. */
export async function infoSchema(): Promise<Uint8Array> {
  const arrow = await import("apache-arrow");
  return schemaMessageOf(arrow, schemaOf(arrow));
}

/** Returns the facts of the given numbers as an Arrow IPC stream; all facts without numbers. Unknown ones are left out. */
export async function infoStream(numbers: readonly number[], server: ServerFacts): Promise<Uint8Array> {
  const arrow = await import("apache-arrow");
  const facts = factsOf(server);
  const asked =
    numbers.length === 0 ? [...facts.keys()] : [...new Set(numbers)].filter((id) => facts.has(id));
  const values = asked.map((id) => facts.get(id));
  const schema = schemaOf(arrow);
  const type = schema.fields[1]?.type as InstanceType<Arrow["DenseUnion"]>;
  const lists: unknown[][] = type.children.map(() => []);
  const typeIds = Int8Array.from(values, memberOf);
  const valueOffsets = Int32Array.from(
    values,
    (value, at) => (lists[typeIds[at] as number]?.push(value) ?? 1) - 1,
  );
  const children = type.children.map((field, at) => {
    const list = lists[at] ?? [];
    return list.length === 0 ? emptyData(arrow, field.type) : dataOf(arrow, list, field.type);
  });
  const union = arrow.makeData({
    type,
    length: values.length,
    typeIds,
    valueOffsets,
    children,
  } as never) as Data;
  const names = dataOf(arrow, asked, new arrow.Uint32());
  const struct = new arrow.Struct(schema.fields);
  const data = arrow.makeData({ type: struct, length: values.length, children: [names, union] });
  const table = new arrow.Table(schema, [new arrow.RecordBatch(schema, data as never)]);
  return arrow.tableToIPC(table, "stream");
}

/** Returns the member of the union that has a value. */
function memberOf(value: unknown): number {
  return ["string", "boolean", "bigint", "number"].indexOf(typeof value);
}

function dataOf(arrow: Arrow, values: readonly unknown[], type: DataType): Data {
  return arrow.vectorFromArray(values, type).data[0] as Data;
}

/** Returns data without rows, whose members apache-arrow would leave out otherwise. */
function emptyData(arrow: Arrow, type: DataType): Data {
  const [first, ...others] = (type.children ?? []).map((field) => emptyData(arrow, field.type));
  if (first === undefined) return arrow.makeData({ type, length: 0 } as never) as Data;
  if (arrow.DataType.isStruct(type))
    return arrow.makeData({ type, length: 0, children: [first, ...others] }) as Data;
  return arrow.makeData({ type, length: 0, valueOffsets: Int32Array.of(0), child: first } as never) as Data;
}

/** The schema that Flight SQL has for the answer. */
function schemaOf(arrow: Arrow) {
  const { Field, Int32, List } = arrow;
  const lists = new List(new Field("$data$", new Int32(), true));
  const entry = new arrow.Struct([new Field("key", new Int32()), new Field("value", lists, true)] as never);
  const members = [
    new Field("string_value", new arrow.Utf8(), true),
    new Field("bool_value", new arrow.Bool(), true),
    new Field("bigint_value", new arrow.Int64(), true),
    new Field("int32_bitmask", new Int32(), true),
    new Field("string_list", new List(new Field("item", new arrow.Utf8(), true)), true),
    new Field("int32_to_int32_list_map", new arrow.Map_(new Field("entries", entry, false) as never), true),
  ];
  const union = new arrow.DenseUnion([0, 1, 2, 3, 4, 5], members as never);
  return new arrow.Schema([new Field("info_name", new arrow.Uint32()), new Field("value", union)]);
}

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
