import assert from "node:assert/strict";
import * as arrow from "apache-arrow";
import { array, asyncProperty, assert as check, constant, constantFrom, letrec, tuple } from "fast-check";
import { afterAll, beforeAll, test } from "vitest";
import { runSql } from "../../test/fixtures/sql.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { connect } from "../client/index.ts";
import type { Namespace } from "../client/namespace.ts";
import { createSqlEngine } from "./create-engine.ts";
import { tablesOfNamespace } from "./namespace-tables.ts";
import type { SqlScan, SqlTables } from "./sql-engine.ts";

const engine = createSqlEngine({ keptMib: 0 });
let namespace: Namespace;
let remove: () => Promise<void>;
let tables: SqlTables;
let unpushed: SqlTables;
/** What the scans since the last statement have been asked for. */
let scans: SqlScan[] = [];

beforeAll(async () => {
  const directory = await temporaryDirectory();
  remove = directory.remove;
  namespace = await connect("dir", { root: directory.path });
  await namespace.createTable("t", rowsOf(0) as never);
  await namespace.createTable("u", rowsOf(7) as never);
  for (const [column, indexType] of [
    ["i", "BTREE"],
    ["s", "BTREE"],
    ["f", "BTREE"],
    ["b", "BITMAP"],
  ])
    await namespace.createTableScalarIndex({ id: ["u"], column, indexType } as never);
  const own = tablesOfNamespace(namespace);
  unpushed = { ...own, scan: (table, { columns }, signal) => own.scan(table, { columns }, signal) };
  tables = {
    ...own,
    scan(table, what, signal) {
      scans.push(what);
      return own.scan(table, what, signal);
    },
  };
});

afterAll(async () => {
  await engine.close();
  await namespace.close();
  await remove();
});

/** Values of each column; every third is a null. */
const VALUES = {
  i: [new arrow.Int64(), [0n, 1n, 2n, -3n, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n]],
  u: [new arrow.Uint8(), [0, 1, 2, 200, 255]],
  h: [new arrow.Float32(), [0, -0, 1, 0.1, Number.NaN, Number.NEGATIVE_INFINITY]],
  s: [new arrow.Utf8(), ["", "a", "A", "ab", "a%", "a\nb", "é", "it's", "\\", "a\\b", "\u{1f600}"]],
  l: [new arrow.LargeUtf8(), ["", "x", "xy", "b"]],
  b: [new arrow.Bool(), [true, false]],
  d: [new arrow.DateDay(), [0, 9131, 18_262, -300, 20_000].map((day) => new Date(day * 86_400_000))],
  dec: [new arrow.Decimal(2, 15, 128), [5, 2400, -110, 100, 123_456_789].map((value) => decimal(value))],
  "Odd Name": [new arrow.Int32(), [1, 2, 3]],
} as const;

function decimal(value: number): Uint32Array {
  return new Uint32Array(BigInt64Array.of(BigInt(value), value < 0 ? -1n : 0n).buffer);
}

/** Doubles of which some only their bits tell apart. */
const DOUBLES = [0x0n, 0x8000000000000000n, 0x7ff8000000000000n, 0xfff8000000000000n, 0x7ff0000000000000n]
  .map((bits) => new Float64Array(BigUint64Array.of(bits).buffer)[0] as number)
  .concat([1, -1, 0.1, 1.5]);
const TIMES = [0n, 1_577_836_800_000_000n, 1_577_836_800_000_001n, -5n, 1_600_000_000_123_456n];

function rowsOf(shift: number): arrow.Table {
  const count = 96;
  const pick = <T>(values: readonly T[], row: number, stride: number): T | null =>
    (row + shift) % 3 === stride % 3 ? null : (values[(row * stride + shift) % values.length] as T);
  const rows = Array.from({ length: count }, (_, row) => row);
  const columns: Record<string, arrow.Vector> = {
    rid: arrow.vectorFromArray(rows, new arrow.Int32()),
    f: exactly(
      new arrow.Float64(),
      rows.map((row) => pick(DOUBLES, row, 5)),
      (values) => Float64Array.from(values, (value) => value ?? 0),
    ),
    ts: exactly(
      new arrow.TimestampMicrosecond(),
      rows.map((row) => pick(TIMES, row, 7)),
      (values) => BigInt64Array.from(values, (value) => value ?? 0n),
    ),
  };
  let stride = 1;
  for (const [name, [type, values]] of Object.entries(VALUES)) {
    const own = stride++;
    columns[name] = arrow.vectorFromArray(
      rows.map((row) => pick(values as readonly unknown[], row, own)),
      type,
    );
  }
  return new arrow.Table(columns as never);
}

/** Returns a column with the bits that its values have: vectorFromArray makes one NaN of all. */
function exactly<T>(
  type: arrow.DataType,
  values: readonly (T | null)[],
  dataOf: (values: readonly (T | null)[]) => ArrayBufferView,
): arrow.Vector {
  const nullBitmap = new Uint8Array(Math.ceil(values.length / 8));
  for (const [i, value] of values.entries())
    if (value !== null) (nullBitmap[i >> 3] as number) |= 1 << (i & 7);
  const nullCount = values.filter((value) => value === null).length;
  return arrow.makeVector(
    arrow.makeData({ type, data: dataOf(values), nullBitmap, nullCount, length: values.length } as never),
  );
}

const CONSTANTS: Readonly<Record<string, readonly string[]>> = {
  i: [
    "0",
    "1",
    "-3",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "1.5",
    "'2'",
    "NULL",
  ],
  u: ["0", "2", "200", "255", "256", "-1", "2.0"],
  f: [
    "0",
    "-0.0",
    "0.0",
    "1",
    "0.1",
    "1.5",
    "1e300",
    "'nan'::DOUBLE",
    "9007199254740993",
    "0.10000000000000001",
  ],
  h: ["0", "1", "0.1", "-1", "16777217"],
  s: ["''", "'a'", "'A'", "'a%'", "'é'", "'it''s'", "'\\'", "'a' COLLATE nocase", "NULL"],
  l: ["'x'", "''", "'b'"],
  b: ["true", "false", "NULL", "1"],
  d: [
    "DATE '1995-01-01'",
    "'1995-01-01'",
    "DATE '2020-01-01'",
    "TIMESTAMP '2020-01-01 00:00:01'",
    "'1969-03-07'",
  ],
  ts: [
    "TIMESTAMP '2020-01-01 00:00:00'",
    "DATE '2020-01-01'",
    "'2020-01-01 00:00:00.000001'",
    "'2020-09-13 12:26:40.123456'",
  ],
  dec: ["0.05", "24", "24.00", "-1.1", "1", "0.055", "1234567.89", "1e2", "99999999999999"],
  '"Odd Name"': ["1", "2", "4"],
};
const PATTERNS = ["'a%'", "'%b'", "'_'", "'a_b'", "'%'", "''", "'a\\%'", "'\\\\'", "'é'", "'A%'"];
const column = constantFrom(...Object.keys(CONSTANTS));
const leaf = column.chain((name) => {
  const value = constantFrom(...(CONSTANTS[name] as readonly string[]));
  const compared = tuple(constantFrom("=", "<>", "<", "<=", ">", ">="), value);
  const isText = name === "s" || name === "l";
  return constantFrom(0, 0, 0, 1, 2, 3, 4, 5, 6, 7).chain((form) => {
    switch (form) {
      case 1:
        return compared.map(([operator, text]) => `${text} ${operator} X.${name}`);
      case 2:
        return array(value, { minLength: 1, maxLength: 3 }).map(
          (list) => `X.${name} IN (${list.join(", ")})`,
        );
      case 3:
        return array(value, { minLength: 1, maxLength: 3 }).map(
          (list) => `X.${name} NOT IN (${list.join(", ")})`,
        );
      case 4:
        return tuple(value, value).map(([from, to]) => `X.${name} BETWEEN ${from} AND ${to}`);
      case 5:
        return constantFrom(`X.${name} IS NULL`, `X.${name} IS NOT NULL`);
      case 6:
        return isText
          ? tuple(constantFrom("LIKE", "NOT LIKE", "ILIKE"), constantFrom(...PATTERNS)).map(
              ([word, pattern]) => `X.${name} ${word} ${pattern}`,
            )
          : constantFrom("X.b", "NOT X.b");
      default:
        return compared.map(([operator, text]) => `X.${name} ${operator} ${text}`);
    }
  });
});
const { condition } = letrec<{ condition: string }>((tie) => ({
  condition: tuple(constantFrom(0, 0, 0, 1, 1, 2, 3), leaf, leaf).chain(([form, left, right]) => {
    switch (form) {
      case 1:
        return tie("condition").map((other) => `(${left} AND ${other})`);
      case 2:
        return tie("condition").map((other) => `(${left} OR ${other})`);
      case 3:
        return constant(`NOT (${left} AND ${right})`);
      default:
        return constant(left);
    }
  }),
}));

async function resultOf(statement: string, from: SqlTables): Promise<string[]> {
  const result = await runSql(engine, statement, { tables: from });
  return result
    .toArray()
    .map((row) => JSON.stringify(row, (_key, value) => (typeof value === "bigint" ? String(value) : value)))
    .sort();
}

/** Fails unless a statement has the same rows with what the scans leave out and without. */
async function compare(statement: string): Promise<void> {
  const whole = await resultOf(statement, unpushed).catch(({ message }) => [`error: ${message}`]);
  // A scan that leaves out the rows of which a condition fails has no error; both are right.
  if (whole[0]?.startsWith("error")) return;
  assert.deepEqual(await resultOf(statement, tables), whole, `${statement}: ${JSON.stringify(scans)}`);
}

test("random conditions keep the same rows with and without filters of the scans", {
  timeout: 300_000,
}, async () => {
  let pushed = 0;
  await check(
    asyncProperty(
      array(condition, { minLength: 1, maxLength: 3 }),
      constantFrom("t", "u"),
      async (parts, table) => {
        scans = [];
        await compare(`SELECT x.rid FROM ${table} AS x WHERE ${parts.join(" AND ").replaceAll("X.", "x.")}`);
        if (scans[0]?.filter !== undefined) pushed++;
      },
    ),
    { numRuns: 250 },
  );
  assert.ok(pushed > 100, `${pushed} filters`);
});

test("random conditions of joins keep the same rows", { timeout: 300_000 }, async () => {
  const join = constantFrom(
    ...["t x JOIN u y ON x.i = y.i AND COND", "t x LEFT JOIN u y ON x.i = y.i AND COND"],
    ...["t x RIGHT JOIN u y ON x.i = y.i", "t x FULL JOIN u y ON x.i = y.i AND COND", "t x, u y"],
    ...["t x SEMI JOIN u y ON x.i = y.i AND COND", "t x ANTI JOIN u y ON x.i = y.i AND COND"],
    ...["t x JOIN u y USING (i)", "t x LEFT JOIN (t y JOIN u z USING (i)) ON x.u = y.u"],
    ...[
      "t x JOIN (SELECT * FROM u WHERE COND) y ON x.i = y.i",
      "t x POSITIONAL JOIN u y",
      "u x ASOF JOIN u y ON x.i >= y.i",
    ],
  );
  await check(
    asyncProperty(join, condition, condition, constantFrom("x", "y"), async (from, on, where, side) => {
      scans = [];
      const isNarrow = /SEMI|ANTI/.test(from);
      const named = isNarrow ? "x" : side;
      const inner = from.includes("(SELECT") ? on.replaceAll("X.", "") : on.replaceAll("X.", `${side}.`);
      const source = from.replace("COND", () => inner);
      await compare(
        `SELECT x.rid${isNarrow ? "" : ", y.rid AS other"} FROM ${source} WHERE ${where.replaceAll("X.", `${named}.`)}`,
      );
    }),
    { numRuns: 150 },
  );
});

test.each([
  "SELECT rid, i + 1 AS i FROM t WHERE i = 1",
  "SELECT rid FROM t AS x(a, rid) WHERE a = 1",
  "SELECT rid FROM t JOIN u USING (rid) WHERE rid > 5 AND t.b",
  "SELECT rid FROM t NATURAL JOIN u WHERE rid > 5",
  "SELECT rid, (SELECT max(rid) FROM u WHERE b AND u.rid < t.rid) AS m FROM t WHERE b",
  "WITH t AS (SELECT rid + 1 AS rid FROM t WHERE b) SELECT rid FROM t WHERE rid > 5",
  "SELECT count(*) AS n FROM t LIMIT 3",
  "SELECT max(rid) AS n FROM t LIMIT 1 OFFSET 0",
  "SELECT list(rid) AS n FROM t LIMIT 3",
  "SELECT b, count(*) AS n FROM t GROUP BY b LIMIT 10",
  "SELECT DISTINCT b FROM t LIMIT 10",
  "SELECT rid FROM t ORDER BY rid DESC LIMIT 3",
  "SELECT rid, count(*) OVER () AS n FROM t LIMIT 100",
  "SELECT unnest([rid, rid]) AS n FROM t LIMIT 300",
  "SELECT count(*) AS n FROM (SELECT rid FROM t TABLESAMPLE reservoir(20 ROWS) REPEATABLE (3) LIMIT 10)",
  "SELECT rid FROM t TABLESAMPLE reservoir(20 ROWS) REPEATABLE (3) LIMIT 10",
  "SELECT rid FROM t QUALIFY row_number() OVER (ORDER BY rid DESC) < 3 LIMIT 10",
])("%s has the same rows", async (statement) => {
  scans = [];
  assert.deepEqual(await resultOf(statement, tables), await resultOf(statement, unpushed));
});

test("scans are told the filter and the limit of a statement", async () => {
  const told = async (statement: string) => {
    scans = [];
    await resultOf(statement, tables);
    return scans.map(({ filter, limit }) => filter ?? limit);
  };
  assert.deepEqual(await told("SELECT rid FROM t WHERE i = 1 AND s LIKE 'a%' AND length(s) > 1"), [
    "`i` = 1 AND `s` LIKE 'a%'",
  ]);
  assert.deepEqual(await told("SELECT rid FROM t WHERE d >= '1995-01-01' AND dec BETWEEN 0.05 AND 24"), [
    "`d` >= date '1995-01-01' AND (`dec` >= cast('0.05' as decimal(15, 2)) AND `dec` <= cast('24.0' as decimal(15, 2)))",
  ]);
  assert.deepEqual(await told('SELECT rid FROM t WHERE "odd name" IN (1, 2) OR (b AND length(s) = 1)'), [
    "(`Odd Name` IN (1, 2) OR `b` = true)",
  ]);
  assert.deepEqual(await told("SELECT * FROM t LIMIT 3 OFFSET 2"), [5]);
  assert.deepEqual(await told("SELECT rid FROM t WHERE rid > 3 LIMIT 3"), ["`rid` > 3"]);
});
