import assert from "node:assert/strict";
import { Int32, Table, tableFromIPC, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import fc from "fast-check";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../../test/fixtures/dir/directory-backend.ts";
import { isLanceError } from "../../../../../namespace/errors.ts";
import { atOnce } from "../../../../../runtime/pace.ts";
import { printSql } from "../../sql/tree.ts";
import { parseSql } from "../../sql/trees.ts";
import { apartSteps, type Use } from "./in-lists.ts";

type Value = number | string | null;
type Row = Readonly<Record<"a" | "s", Value>>;
/** A condition as text, and its value for a row. */
interface Condition {
  readonly text: string;
  readonly of: (row: Row) => boolean | null;
}

const ROWS: readonly Row[] = [null, 1, 2, 3, 4].flatMap((a) => [null, "u", "v", "w"].map((s) => ({ a, s })));
const id = (row: Row) => ROWS.indexOf(row);

const not = (value: boolean | null) => (value === null ? null : !value);
const all = (values: readonly (boolean | null)[]) =>
  values.includes(false) ? false : values.includes(null) ? null : true;
const any = (values: readonly (boolean | null)[]) => not(all(values.map(not)));
const equals = (a: Value, b: Value) => (a === null || b === null ? null : a === b);
const literal = (value: Value) =>
  value === null ? "NULL" : typeof value === "string" ? `'${value}'` : `${value}`;

const column = fc.constantFrom(
  { name: "a" as const, values: [1, 2, 3, 4] },
  { name: "s" as const, values: ["u", "v", "w", "x"] },
);
const list = column.chain(({ name, values }) =>
  fc
    .tuple(
      fc.boolean(),
      fc.array(fc.constantFrom<Value[]>(...values, ...values, null), { minLength: 1, maxLength: 4 }),
    )
    .map(([negated, items]): Condition => {
      const found = (row: Row) => any(items.map((item) => equals(row[name], item)));
      return {
        text: `${name} ${negated ? "NOT " : ""}IN (${items.map(literal).join(", ")})`,
        of: (row) => (negated ? not(found(row)) : found(row)),
      };
    }),
);
/** A chain of comparisons, which the engine takes for a list. */
const chain = column.chain(({ name, values }) =>
  fc.array(fc.constantFrom<Value[]>(...values), { minLength: 1, maxLength: 4 }).map(
    (items): Condition => ({
      text: `(${items.map((item) => `${name} = ${literal(item)}`).join(" OR ")})`,
      of: (row) => any(items.map((item) => equals(row[name], item))),
    }),
  ),
);
const missing = column.map(
  ({ name }): Condition => ({ text: `${name} IS NULL`, of: (row) => row[name] === null }),
);
const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    { weight: 3, arbitrary: list },
    { weight: 2, arbitrary: chain },
    { weight: 1, arbitrary: missing },
    {
      weight: 4,
      arbitrary: fc.tuple(fc.boolean(), tie("condition"), tie("condition")).map(
        ([and, left, right]): Condition => ({
          text: `(${left.text} ${and ? "AND" : "OR"} ${right.text})`,
          of: (row) => (and ? all : any)([left.of(row), right.of(row)]),
        }),
      ),
    },
    {
      weight: 2,
      arbitrary: tie("condition").map(
        ({ text, of }): Condition => ({ text: `NOT (${text})`, of: (row) => not(of(row)) }),
      ),
    },
    {
      weight: 1,
      arbitrary: tie("condition").map(
        ({ text, of }): Condition => ({ text: `(${text}) IS NULL`, of: (row) => of(row) === null }),
      ),
    },
  ),
}));

async function openTable(t: TestContext) {
  const client = await openClient(t, await temporaryDirectory(t));
  const rows = new Table({
    id: vectorFromArray(ROWS.map(id), new Int32()),
    a: vectorFromArray(
      ROWS.map(({ a }) => a),
      new Int32(),
    ),
    s: vectorFromArray(
      ROWS.map(({ s }) => s),
      new Utf8(),
    ),
  });
  await client.upload("createTable", "t", {}, tableToIPC(rows, "stream"));
  return client;
}

test("a condition of lists, comparisons, AND, OR and NOT finds the rows for which it is true, whatever is null", {
  timeout: 60_000,
}, async (t) => {
  const client = await openTable(t);
  await fc.assert(
    fc.asyncProperty(condition, async ({ text: predicate, of }) => {
      const expected = ROWS.filter((row) => of(row) === true).length;
      assert.equal(Number((await client.call("countTableRows", "t", { predicate })).count), expected);
    }),
    { numRuns: Number(process.env["IN_LISTS_RUNS"] ?? 600) },
  );
});

for (const predicate of [
  "a NOT IN (1, 24) OR a NOT IN (18, 28)",
  "NOT (a IN (1, 2) AND a IN (3, 4))",
  "s NOT IN ('u') OR s NOT IN ('v')",
  "NOT (array_has([1, 2], a) AND array_has([3, 4], a))",
  "NOT ((a = 1 OR a = 2 OR a = 5) AND (a = 3 OR a = 4 OR a = 7 OR a = 8))",
]) {
  test(`a query, an update and a deletion of ${predicate} spare the rows with a null`, async (t) => {
    const client = await openTable(t);
    const name = predicate.includes("s ") ? "s" : "a";
    const missing = ROWS.filter((row) => row[name] === null);
    const found = ROWS.length - missing.length;
    const idsOf = async (filter?: string) =>
      [...(tableFromIPC(await client.query("t", { ...(filter && { filter }) })).getChild("id") ?? [])].map(
        Number,
      );
    assert.equal((await idsOf(predicate)).length, found);
    const updates = [{ column: "id", expression: "id" }];
    assert.equal((await client.call("updateTable", "t", { predicate, updates })).updatedRows, BigInt(found));
    assert.equal((await client.call("deleteFromTable", "t", { predicate })).numDeletedRows, BigInt(found));
    assert.deepEqual((await idsOf()).sort(), missing.map(id).sort());
  });
}

test("an expression of a query, an update and a new column is null where its lists are", async (t) => {
  const client = await openTable(t);
  const expression = "(a NOT IN (1) OR a NOT IN (2)) IS NULL";
  const columns = { columnNames: [], columnAliases: { id: "id", n: expression } };
  const result = tableFromIPC(await client.query("t", { columns }));
  const expected = ROWS.map(({ a }) => a === null);
  assert.deepEqual([...(result.getChild("n") ?? [])], expected);
  const text = `cast(${expression} AS string)`;
  await client.call("updateTable", "t", { updates: [{ column: "s", expression: text }] });
  const count = async (predicate: string) =>
    Number((await client.call("countTableRows", "t", { predicate })).count);
  assert.equal(await count("s = 'true'"), 4);
  await client.call("alterTableAddColumns", "t", { newColumns: [{ name: "n", expression }] });
  assert.equal(await count("n"), 4);
  const computed = [{ name: "c", computed: expression }];
  await assert.rejects(
    async () => client.call("alterTableAddColumns", "t", { newColumns: computed }),
    failsWith("Unsupported"),
  );
});

test("the condition of a merge spares the rows with a null", async (t) => {
  const client = await openTable(t);
  const rows = new Table({
    id: vectorFromArray([0, 4], new Int32()),
    a: vectorFromArray([9, 9], new Int32()),
    s: vectorFromArray(["x", "x"], new Utf8()),
  });
  const merge = {
    on: ["id"],
    whenMatchedUpdateAll: true,
    whenMatchedUpdateAllFilt: "target.a NOT IN (1, 8) OR target.a NOT IN (2)",
    whenNotMatchedBySourceDelete: true,
    whenNotMatchedBySourceDeleteFilt: "a NOT IN (1) OR a NOT IN (2)",
  };
  await client.upload("mergeInsertIntoTable", "t", merge, tableToIPC(rows, "stream"));
  const count = async (predicate: string) =>
    Number((await client.call("countTableRows", "t", { predicate })).count);
  assert.equal(await count("a = 9"), 1);
  assert.equal(await count("a IS NULL"), 4);
  assert.equal(await count("true"), 5);
});

test("a condition whose lists the engine joins correctly keeps its text, so that indices answer it", () => {
  for (const text of [
    "a IN (1, 2) AND b NOT IN (3)",
    "a NOT IN (1, 2) OR b NOT IN (3) OR c = 4",
    "a IN (1) AND (a IN (1, 2) OR b IS NULL)",
    "a NOT IN (1) AND a NOT IN (2)",
    "a IN (1) OR a = 2 OR a = 3 OR b LIKE 'x'",
    "NOT (a IN (1) OR a = 2 OR a IN (3))",
    "a NOT IN (1, 2) OR a IS NULL OR a = 3",
    "a != 1 AND a != 2 AND a != 3 AND a <> 4",
    "NOT array_has(a, 1) OR NOT array_has(a, 2) OR b IN (3)",
    "NOT (a = 1 AND b = 2) OR c = 3 OR d = 4",
  ])
    assert.equal(apart(text), text);
});

test("a BETWEEN keeps its AND, also beside lists that are kept apart", () => {
  assert.equal(
    apart("a NOT IN (1) OR a NOT IN (2) AND b BETWEEN 1 AND 2"),
    "a NOT IN (1) OR random() > 2 OR a NOT IN (2) AND random() <= 2 AND b BETWEEN 1 AND 2",
  );
});

test("only the conditions from the first list to the last one are kept apart, so that indices answer the others", () => {
  assert.equal(
    apart("(k = 1 OR t = 'x') AND (a NOT IN (1) OR b = 2 OR a NOT IN (2)) AND (k = 3 OR t = 'y')"),
    "(k = 1 OR t = 'x') AND random() <= 2 AND (a NOT IN (1) OR random() > 2 OR b = 2 OR random() > 2 OR a NOT IN (2)) AND random() <= 2 AND (k = 3 OR t = 'y')",
  );
});

test("an expression that has too many conditions to keep its lists apart is refused", () => {
  const text = Array.from({ length: 4001 }, (_, i) => `a NOT IN (${i})`).join(" OR ");
  assert.throws(
    () => apart(text),
    (error) => isLanceError(error, "InvalidInput"),
  );
});

function apart(text: string, use: Use = "condition"): string {
  return printSql(text, atOnce(apartSteps(parseSql(text), use)));
}
