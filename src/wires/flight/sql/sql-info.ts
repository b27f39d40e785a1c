import type { Data, DataType } from "apache-arrow";
import { HANDLE_MS } from "../tickets.ts";
import { type Arrow, schemaMessageOf } from "./answer-rows.ts";

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
