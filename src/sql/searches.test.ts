import assert from "node:assert/strict";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runSql } from "../../test/fixtures/sql.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { until } from "../../test/support/until.ts";
import { connect, LanceError } from "../client/index.ts";
import type { Namespace } from "../client/namespace.ts";
import { createSqlEngine } from "./create-engine.ts";
import { tablesOfNamespace } from "./namespace-tables.ts";
import { writesToNamespace } from "./namespace-writes.ts";
import type { SqlTables } from "./sql-engine.ts";

const engine = createSqlEngine({ memoryMib: 256 });
let namespace: Namespace;
let remove: () => Promise<void>;

/** A document: every third one is about a puppy, more often the smaller its number is. */
const document = (id: number) => ({
  id,
  kind: id % 2 === 0 ? "even" : "odd",
  text: id % 3 === 0 ? `${"puppy ".repeat(40 - id)}number ${id}` : `kitten ${id}`,
  vector: [id, -id / 2, 1],
});

beforeAll(async () => {
  const directory = await temporaryDirectory();
  remove = directory.remove;
  namespace = await connect("dir", { root: directory.path });
  await namespace.createNamespace({ id: ["team"] });
  await namespace.createTable(
    { id: ["team", "docs"] },
    Array.from({ length: 40 }, (_, id) => document(id)),
  );
  await namespace.createTableScalarIndex({ id: ["team", "docs"], column: "text", indexType: "FTS" });
  await until(async () => (await namespace.listTableIndices({ id: ["team", "docs"] })).indexes.length === 1);
  await namespace.createTable("scored", [{ id: 1, _Distance: 5, vector: [1, 2] }]);
  await namespace.createTable(
    "labels",
    [3, 4, 5].map((id) => ({ id, label: `label ${id}` })),
  );
});

afterAll(async () => {
  await engine.close();
  await namespace.close();
  await remove();
});

async function rows(statement: string, namespacePath: readonly string[] = []) {
  const table = await runSql(engine, statement, {
    tables: tablesOfNamespace(namespace),
    writes: writesToNamespace(namespace, { database: "lance" }),
    namespacePath,
  });
  return table.toArray().map((row) => Object.values(row.toJSON() as Record<string, unknown>));
}

const VECTOR = "lance_vector_search('team.docs', 'vector', [7, -3.5, 1]";

test("finds the rows that are nearest to a vector, whatever the vector is written as", async () => {
  const nearest = [[7], [6], [8]].map(([id]) => [id]);
  for (const vector of [
    "[7, -3.5, 1]",
    "[7, -3.5, 1]::FLOAT[3]",
    "[7.0, -35e-1, 1]::DOUBLE[]",
    "array_value(7, -3.5, 1.00000000000000000000000000000000)",
    "'[7, -3.5, 1]'::FLOAT[3]",
  ]) {
    const search = `lance_vector_search('team.docs', 'vector', ${vector}, k = 3)`;
    expect(await rows(`SELECT id FROM ${search} ORDER BY _distance, id`)).toEqual(nearest);
  }
  expect(await rows(`SELECT _distance FROM ${VECTOR}, k => 2) ORDER BY 1`)).toEqual([[0], [1.25]]);
  expect(await rows(`SELECT count(*) FROM ${VECTOR})`)).toEqual([[10n]]);
  expect(await rows(`SELECT count(*), min(_distance) FROM ${VECTOR}, k := 100)`)).toEqual([[40n, 0]]);
});

test("has the columns of its table and a score, in the order of a query", async () => {
  const [row] = await rows(`SELECT * FROM ${VECTOR}, k = 1)`);
  const { id, kind, text } = document(7);
  assert.deepEqual(JSON.parse(JSON.stringify(row)), [id, kind, text, [7, -3.5, 1], 0]);
  expect(
    await rows(`SELECT s._distance, docs.id FROM ${VECTOR}, k = 1) s, team.docs WHERE s.id = docs.id`),
  ).toEqual([[0, 7]]);
});

test("finds words, and both by fused ranks, as a query does", async () => {
  const query = async (request: object) => {
    const found = await namespace.queryTable({ id: ["team", "docs"], k: 4, ...request }).toTable();
    return found.toArray().map((row) => Number(row.toJSON()["id"]));
  };
  const words = { fullTextQuery: { stringQuery: { columns: ["text"], query: "puppy" } } };
  const found = await rows(
    "SELECT id FROM lance_fts('team.docs', 'text', 'puppy', k = 4) ORDER BY _score DESC",
  );
  assert.deepEqual(found.flat(), await query(words));
  const hybrid = await rows(
    `SELECT id FROM lance_hybrid_search('team.docs', 'vector', [7, -3.5, 1], 'text', 'puppy', k = 4)
     ORDER BY _relevance_score DESC, id`,
  );
  assert.deepEqual(
    hybrid.flat().sort(),
    (await query({ ...words, vector: { singleVector: [7, -3.5, 1] } })).sort(),
  );
  expect(await rows("SELECT count(*) FROM lance_fts('team.docs', 'text', 'nowhere')")).toEqual([[0n]]);
});

test("applies conditions behind the search, or before it with prefilter", async () => {
  const odd = `SELECT id FROM ${VECTOR}, k = 3`;
  expect(await rows(`${odd}) WHERE kind = 'odd'`)).toEqual([[7]]);
  const before = [[5], [7], [9]];
  expect(await rows(`${odd}, prefilter = true) WHERE kind = 'odd' ORDER BY id`)).toEqual(before);
  expect(await rows(`${odd}, filter = 'kind = ''odd''', prefilter => true) ORDER BY id`)).toEqual(before);
  expect(await rows(`${odd}, filter = 'kind = ''odd''')`)).toEqual([[7]]);
  expect(
    await rows(
      `${odd}, prefilter = true, filter = 'id > 5 OR id < 0') WHERE kind = 'odd' AND _distance < 30 ORDER BY id`,
    ),
  ).toEqual([[7], [9], [11]]);
  expect(
    await rows(
      `SELECT s.id, label FROM ${VECTOR}, k = 2, prefilter = true) s JOIN labels l USING (id) WHERE s.kind = 'odd' ORDER BY 1`,
    ),
  ).toEqual([[5, "label 5"]]);
});

test.each([
  ["a function", "length(kind) = 3"],
  ["a part that stands with others", "kind = 'odd' AND (id > 3 OR _distance > 1)"],
  ["a subquery", "EXISTS (SELECT 1 FROM labels x WHERE x.id = s.id)"],
])("refuses a condition before the search that is %s", async (_what, condition) => {
  const statement = `SELECT s.id FROM ${VECTOR}, prefilter = true) s, labels l WHERE ${condition}`;
  await expect(rows(statement)).rejects.toThrow(/a condition for a search with "prefilter" compares/);
});

test("joins what it finds with other tables by any condition", async () => {
  const near = `${VECTOR}, k = 3, prefilter = true) s`;
  for (const statement of [
    `SELECT s.id FROM ${near} JOIN labels l ON s.id = l.id WHERE s.kind = 'odd'`,
    `SELECT s.id FROM ${near}, labels l WHERE s.id = l.id AND s.kind = 'odd'`,
    `SELECT s.id FROM labels JOIN ${near} ON abs(s.id - labels.id) < 0.5 AND kind = 'odd'`,
    `SELECT s.id FROM ${near}, labels WHERE label = 'label ' || s.id::BIGINT AND s.kind = 'odd'`,
  ])
    expect(await rows(statement), statement).toEqual([[5]]);
});

test("is refused before the search in the places where a condition comes behind something else", async () => {
  for (const statement of [
    `SELECT s.id FROM labels l LEFT JOIN ${VECTOR}, prefilter = true) s USING (id) WHERE s.kind = 'odd'`,
    `SELECT id FROM ${VECTOR}, prefilter = true) s TABLESAMPLE 50% WHERE s.kind = 'odd'`,
    `SELECT a FROM ${VECTOR}, prefilter = true) s (a) WHERE a > 3`,
    `SELECT a FROM ${VECTOR}, prefilter = true) s (a, b, c, d, e) WHERE d[1] > 3 AND s.d[2] < 4`,
    `SELECT 1 FROM ${VECTOR}, prefilter = true) s (_distance, b, c, d, e) WHERE _distance > 3`,
    `SELECT l.id FROM labels l LEFT JOIN (${VECTOR}, prefilter = true) s JOIN labels m ON s.kind = 'odd') ON true`,
    `FROM ${VECTOR}, prefilter = true) s PIVOT (count(*) FOR kind IN ('odd')) WHERE id > 10`,
  ])
    await expect(rows(statement)).rejects.toThrow(/a condition for a search with "prefilter" compares/);
});

test("is refused before the search if it names a column in another way, and passes if it names the score", async () => {
  const near = `${VECTOR}, k = 3, prefilter = true) s`;
  for (const statement of [
    `SELECT id FROM ${near} WHERE (s).kind = 'odd'`,
    `SELECT id FROM ${near} WHERE struct_extract(s, 'kind') = 'odd'`,
    `SELECT id FROM ${near} WHERE COLUMNS(['kind']) = 'odd'`,
    `SELECT id, kind FROM ${near} WHERE #2 = 'odd'`,
    `SELECT id, kind AS Which FROM ${near} WHERE which = 'odd'`,
    `SELECT id, lower(kind) AS a, a AS b, b || a AS c FROM ${near} WHERE c = 'oddodd'`,
  ])
    await expect(rows(statement), statement).rejects.toThrow(
      /a condition for a search with "prefilter" compares/,
    );
  expect(await rows(`SELECT id, _distance AS far FROM ${near} WHERE far < 1`)).toEqual([[7, 0]]);
  expect(await rows(`SELECT id, length(kind) AS kind FROM ${near} WHERE kind = 'odd' ORDER BY id`)).toEqual(
    [5, 7, 9].map((id) => [id, 3n]),
  );
  expect(
    await rows(`SELECT count(*) FROM (${near} JOIN labels ON s.kind = 'odd') j WHERE j.id IN (5, 7, 9)`),
  ).toEqual([[9n]]);
  expect(await rows(`SELECT max(id) FROM ${near} LEFT JOIN labels USING (id) WHERE label IS NULL`)).toEqual([
    [8],
  ]);
});

test("has the numbers that a vector is written with, and refuses those that a 32-bit float has not", async () => {
  await namespace.createTable("signs", [
    { id: 1, vector: [-1, 1] },
    { id: 2, vector: [0, 1] },
  ]);
  const search = (vector: string) =>
    rows(`SELECT id FROM lance_vector_search('signs', 'vector', ${vector}, k = 1, distance_type = 'cosine')`);
  for (const vector of [
    "[-0.0000000000000000567, 0.0000000000000000567]",
    "[-170141183460469231731687303715884.105727, 170141183460469231731687303715884.105727]",
    "'[-5.67e-17, 5.67e-17]'::FLOAT[2]",
  ])
    expect(await search(vector), vector).toEqual([[1]]);
  for (const vector of ["'[1e400, 0]'::FLOAT[2]", "[1e39, 0]", "'[0, -1e39]'::DOUBLE[]"])
    await expect(search(vector), vector).rejects.toThrow(
      /"query_vector" of lance_vector_search has a number that is not one of a 32-bit float at position/,
    );
});

test("reads the version of its table that the statement reads, or the one that it names", async () => {
  const { version } = await namespace.describeTable({ id: ["team", "docs"], loadDetailedMetadata: true });
  await namespace.createTableBranch({ id: ["team", "docs"], name: "trial" });
  await namespace.deleteFromTable({ id: ["team", "docs"], branch: "trial", predicate: "id = 7" });
  const nearest = (state: string) => rows(`SELECT id FROM ${VECTOR}, k = 1, ${state})`);
  expect(await nearest("branch = 'trial'")).not.toEqual([[7]]);
  expect(await nearest(`version = ${version}`)).toEqual([[7]]);
  await expect(nearest("version = 99")).rejects.toThrow(/99/);
});

test("stands in views, common table expressions and statements that write", async () => {
  expect(
    await rows(`WITH near AS (SELECT * FROM ${VECTOR}, k = 2)) SELECT max(_distance) FROM near`),
  ).toEqual([[1.25]]);
  expect(await rows(`CREATE TABLE near AS SELECT id, _distance FROM ${VECTOR}, k = 4)`)).toEqual([[4n]]);
  expect(await rows("SELECT count(*) FROM near WHERE _distance <= 1.25")).toEqual([[3n]]);
  const named = "lance_vector_search('docs', 'vector', [7, -3.5, 1], k = 1)";
  expect(await rows(`SELECT id FROM ${named}`, ["team"])).toEqual([[7]]);
});

test("stands in the query of a view, and is not of a view", async () => {
  const query = `SELECT id FROM ${VECTOR}, k = 2)`;
  const inner = tablesOfNamespace(namespace);
  const tables: SqlTables = {
    ...inner,
    open: async (name, signal) =>
      name.path[0] === "close" ? { ...name, query, namespacePath: [] } : inner.open(name, signal),
  };
  const found = await runSql(engine, "SELECT max(id) AS id FROM close", { tables });
  assert.deepEqual(found.get(0)?.toJSON(), { id: 7 });
  const ofView = runSql(engine, "FROM lance_fts('close', 'text', 'a')", { tables });
  await expect(ofView).rejects.toThrow(/"close" is a view; a search is of a table/);
});

test.each([
  [
    "lance_vector_search('team.docs', 'vector')",
    /needs the argument "query_vector"; it takes \(table, vector_column/,
  ],
  ["lance_vector_search('team.docs', 'vector', [1], 5)", /no argument at place 4/],
  ["lance_fts('team.docs', 'text', 'a', nprobes = 3)", /lance_fts has no argument "nprobes"/],
  ["lance_hybrid_search('team.docs', 'vector', [1], 'text', 'a', alpha = 0.5)", /has no argument "alpha"/],
  ["lance_fts('team.docs', 'text', 'a', k = 2, k = 3)", /the argument "k" twice/],
  [
    "lance_fts('team.docs', 'text', 'a', k = 0)",
    /"k" of lance_fts is a whole number from 1 to 2147483647 at position/,
  ],
  ["lance_fts('team.docs', 'text', 'a', k = 3000000000)", /is a whole number/],
  ["lance_fts('team.docs', 'text', 'a', k = 1 + 1)", /is a whole number/],
  ["lance_fts('team.docs', 'text', 'a', prefilter = 1)", /is true or false/],
  ["lance_fts('team.docs', 'text', '')", /is a text that is not empty/],
  ["lance_fts('team.docs', 'text', NULL)", /is a text that is not empty/],
  ["lance_fts('team.docs', 'text', ?)", /"query" of lance_fts cannot be a parameter/],
  ["lance_fts(team.docs, 'text', 'a')", /"table" of lance_fts is a text/],
  ["lance_fts('/tmp/x.lance', 'text', 'a')", /the name of a table is expected/],
  ["lance_fts('team.docs; DROP', 'text', 'a')", /the end of the name is expected/],
  ["lance_fts('s3://b/x', 'text', 'a')", /the end of the name is expected/],
  ["lance_fts('missing', 'text', 'a')", /missing/],
  ["lance_vector_search('team.docs', 'vector', [])", /is a list of numbers/],
  ["lance_vector_search('team.docs', 'vector', ['a'])", /is a list of numbers/],
  ["lance_vector_search('team.docs', 'vector', [1, NULL])", /is a list of numbers/],
  ["lance_vector_search('team.docs', 'vector', '[1, \"x\"]'::FLOAT[2])", /is a list of numbers/],
  ["lance_vector_search('team.docs', 'vector', [1, 2]::FLOAT[3])", /is cast to 3 numbers, and has 2/],
  ["lance_vector_search('team.docs', 'vector', [1, 2]::INTEGER[2])", /is a list of numbers/],
  ["lance_vector_search('team.docs', 'vector', (SELECT [1.0]))", /is a list of numbers/],
  ["lance_vector_search('team.docs', 'vector', [1, 2])", /2/],
  ["lance_vector_search('team.docs', 'nothing', [1, 2, 3])", /nothing/],
  ["lance_fts('team.docs', 'text', 'a') WITH ORDINALITY", /takes arguments alone/],
  ["main.lance_fts('team.docs', 'text', 'a')", /lance_fts is not supported/],
  [
    "lance_vector_search('scored', 'vector', [1, 2])",
    /table "scored" has a column "_Distance", and a search adds one of this name/,
  ],
])("refuses %s", async (search, message) => {
  const failure = await rows(`SELECT * FROM ${search}`).catch((thrown) => thrown);
  assert.ok(failure instanceof LanceError, String(failure));
  assert.match(failure.message, message);
  assert.match(failure.kind, /^(?:InvalidInput|Unsupported|TableNotFound|TableColumnNotFound)$/);
});

test("is bound once, however many rows its table has besides those that it finds", async () => {
  const own = createSqlEngine({ memoryMib: 256 });
  const call = { tables: tablesOfNamespace(namespace), signal: new AbortController().signal };
  const statement = `SELECT id FROM ${VECTOR}, k = 3)`;
  try {
    await runSql(own, statement, call);
    const running = (await own.prepare("SELECT 1", call)).run(undefined, call.signal)[Symbol.asyncIterator]();
    await running.next();
    // The only process is busy, which a statement that is bound does not wait for.
    await own.prepare(statement, call);
    await running.return?.();
  } finally {
    await own.close();
  }
}, 40_000);

test("keeps no rows of a search for later statements", async () => {
  const statement = `SELECT sum(id) FROM ${VECTOR}, k = 40)`;
  const before = await rows(statement);
  for (let i = 0; i < 4; i++) expect(await rows(statement)).toEqual(before);
  await namespace.deleteFromTable({ id: ["team", "docs"], predicate: "id = 39" });
  expect(await rows(statement)).toEqual([[(before[0]?.[0] as number) - 39]]);
  expect(await rows("SELECT count(*) FROM team.docs")).toEqual([[39n]]);
});
