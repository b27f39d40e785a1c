import assert from "node:assert/strict";
import type { DescMethod } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import { LanceNamespaceService } from "../../../src/gen/lance/namespace/v1/service_pb.ts";
import { errorEntry } from "../../../src/namespace/errors.ts";
import type { Operation } from "../../../src/namespace/lance-namespace.ts";
import { people, personStream } from "../../support/arrow.ts";
import type { LanceClient } from "../../support/client.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { type Init, numberPlaces, requestWith, valuesFor } from "./numbers.ts";
import { damaged, endless, expression, sound } from "./sql.ts";
import { startTarget, TABLE, type Target } from "./target.ts";

/** Number of requests of each kind. */
export interface CostCounts {
  /** Number of expressions of the SQL grammar. */
  readonly expressions: number;
  /** Number of requests with a number. Default: all possible ones. */
  readonly numbers?: number | undefined;
  readonly seed: number;
}

const id = TABLE;

/** All places of requests that contain SQL. */
const PLACES: Readonly<Record<string, (client: LanceClient, sql: string) => Promise<unknown>>> = {
  count: (client, predicate) => client.countTableRows({ id, predicate }),
  filter: (client, filter) => client.queryTable({ id, filter, k: 10n }),
  prefilter: (client, filter) =>
    client.queryTable({ id, filter, prefilter: true, vector: { singleVector: [1, 0] }, k: 5n }),
  alias: (client, sql) => client.queryTable({ id, k: 10n, columns: { columnAliases: { a: sql } } }),
  explain: (client, filter) => client.explainTableQueryPlan({ id, query: { filter } }),
  analyze: (client, filter) => client.analyzeTableQueryPlan({ id, filter }),
  update: (client, predicate) =>
    client.updateTable({ id, predicate, updates: [{ column: "name", expression: "name" }] }),
  set: (client, sql) => client.updateTable({ id, updates: [{ column: "name", expression: sql }] }),
  delete: (client, sql) => client.deleteFromTable({ id, predicate: `(${sql}) and id < 0` }),
  column: (client, sql) =>
    client.alterTableAddColumns({ id, newColumns: [{ name: unique("c"), expression: sql }] }),
  computed: (client, sql) =>
    client.alterTableAddColumns({ id, newColumns: [{ name: unique("c"), computed: sql }] }),
  mergeUpdate: (client, sql) =>
    client.mergeInsertIntoTable(
      { id, on: ["id"], whenMatchedUpdateAll: true, whenMatchedUpdateAllFilt: sql },
      personStream(people(2)),
    ),
  mergeDelete: (client, sql) =>
    client.mergeInsertIntoTable(
      {
        id,
        on: ["id"],
        whenNotMatchedBySourceDelete: true,
        whenNotMatchedBySourceDeleteFilt: `(${sql}) and id < 0`,
      },
      personStream(people(2)),
    ),
  metadata: async (client, sql) => {
    await client.updateFieldMetadata({
      id,
      updates: [{ path: "name", metadata: { "lance_gateway.expression": { value: sql } } }],
    });
    return client.alterTableBackfillColumns({ id, column: "name" });
  },
  view: (client, sql) =>
    client.createMaterializedView({
      id: [unique("v")],
      kind: 1,
      sourceQuery: `SELECT ${sql} AS a FROM t`,
      outputSchema: SCHEMA,
      withNoData: true,
    }),
};

/** An Arrow schema message, in base64. */
const SCHEMA = Buffer.from(personStream([])).toString("base64");

let names = 0;
const unique = (prefix: string) => `${prefix}${++names}`;

/** SQL of callers that ended the process or took all memory before the server bounded it. */
const DEADLY: readonly string[] = [
  `id${"+1".repeat(700)}>1`,
  `name${"||'a'".repeat(700)}='x'`,
  `id${"::int".repeat(700)}>1`,
  `id${" is null".repeat(750)}`,
  `id > 1${" is true".repeat(400)}`,
  `name${" like 'a'".repeat(750)}`,
  `id${" between 1 and 2".repeat(750)}`,
  `coalesce(${Array(1000).fill("true").join(" and ")}, true)`,
  `(${Array(10_000).fill("true").join(" and ")}, 1)`,
  `case when ${Array(10_000).fill("true").join(" and ")} then true end`,
  Array(50_000).fill("true").join(" or "),
  `id::${"nullable(".repeat(3000)}int${")".repeat(3000)} is null`,
  `${"cast(".repeat(30)}1 1${" as int)".repeat(30)} = 1`,
  `name${".a".repeat(40)}. = 1`,
  `abs(id)${".a".repeat(40)}. = 1`,
  "lpad(name, 2000000000) = 'x'",
  "repeat(name, 1000000000) = 'x'",
  "array_length(range(id, 4000000000)) = 1",
  "array_length(array_repeat(name, 1000000000)) = 1",
  "regexp_like(name, name || '(a{0,60}){0,60}')",
  "regexp_count(name, name) > 0",
  "regexp_like(name, '(a{0,60}){0,60}')",
  "name like name || '%'",
  `name like '${"%a_".repeat(200)}'`,
  Array.from({ length: 7000 }, (_, i) => `name like '%q${i}%'`).join(" or "),
  Array.from({ length: 1000 }, (_, i) => `left(name, ${i}) = 'a'`).join(" or "),
  `length(concat(${Array(1000).fill("name").join(",")})) > 1`,
  `array_length(make_array(${Array(1000).fill("name").join(",")})) > 1`,
  "regexp_replace(name, 'a*', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'g') = 'x'",
  `replace(replace('${"a".repeat(10_000)}', 'a', '${"b".repeat(10_000)}'), 'b', '${"c".repeat(1000)}') = name`,
];

/** Sends requests that try to end or to stall a server by their cost. */
export function costTests(what: string, { expressions, numbers, seed }: CostCounts): void {
  describe(what, () => {
    let target: Target;
    beforeAll(async () => {
      target = await startTarget();
    });
    afterAll(() => target.close());

    const send = (place: string, sql: string) =>
      target.send([place, sql], (client) => (PLACES[place] as (typeof PLACES)["count"])(client, sql));

    test("SQL that once ended the process is refused in every place for SQL", async () => {
      const refusal = errorEntry("InvalidInput").code;
      for (const sql of DEADLY) {
        for (const place of Object.keys(PLACES)) {
          assert.deepEqual(await send(place, sql), { code: refusal }, `${place}: ${sql.slice(0, 200)}`);
        }
      }
      await target.check();
    });

    test("numbers that once ended the process select no more than all rows", async () => {
      const all = { vector: { singleVector: [1, 0] }, columns: { columnNames: ["id"] } };
      const some = await target.client.queryTable({ id, ...all, k: 300n });
      for (const request of [
        { k: 2n ** 31n - 1n },
        { k: 2n ** 63n - 1n },
        { k: 300n, refineFactor: 10 ** 9 },
      ]) {
        const sent = { ...all, ...request };
        const outcome = await target.send(sent, (client) => client.queryTable({ id, ...sent }));
        assert.deepEqual(outcome, { answer: some });
      }
      for (const offset of [300n, 2n ** 31n - 1n, 2n ** 63n - 1n]) {
        const sent = { ...all, k: 1n, offset };
        assert.ok("answer" in (await target.send(sent, (client) => client.queryTable({ id, ...sent }))));
      }
      await target.check();
    });

    test("searches for words that once held the engine's threads are refused", async () => {
      const match = { terms: "p1", column: "name", fuzziness: 2 };
      for (const query of [
        { match: { ...match, terms: "p12 ".repeat(4096), maxExpansions: 2 ** 31 - 1 } },
        { match: { ...match, maxExpansions: 2 ** 31 - 1 } },
        { boolean: { should: Array.from({ length: 1000 }, () => ({ match })) } },
        { boolean: { should: Array.from({ length: 1000 }, () => ({ match: { ...match, fuzziness: 0 } })) } },
        { multiMatch: { matchQueries: Array.from({ length: 1000 }, () => match) } },
      ]) {
        const request = { id, fullTextQuery: { structuredQuery: { query } } };
        const refusal = { code: errorEntry("InvalidInput").code };
        assert.deepEqual(await target.send(query, (client) => client.queryTable(request as never)), refusal);
        assert.deepEqual(
          await target.send(query, (client) => client.analyzeTableQueryPlan(request as never)),
          refusal,
        );
      }
      await target.check();
    });

    test(`expressions of the grammar, endless ones and damaged ones leave the server alive (seed ${seed})`, async () => {
      const random = createRandom(seed);
      let answers = 0;
      for (let i = 0; i < expressions; i++) {
        const sql = anySql(random);
        const outcome = await send(random.pick(Object.keys(PLACES)), sql);
        if ("answer" in outcome) answers++;
        if (i % 500 === 499) await target.restore();
      }
      assert.ok(answers > expressions / 20, `${answers} of ${expressions} were answered`);
      await target.check();
    });

    test(`no number in any field of any request ends the server (seed ${seed})`, async () => {
      await target.restore();
      for (const { operation, request } of numberRequests(createRandom(seed), numbers)) {
        await target.send([operation, request], (client) => call(client, operation, request));
        if (operation === "restoreTable" || operation.startsWith("batch")) await target.restore();
      }
      await target.check();
    });
  });
}

function anySql(random: Random): string {
  const sql = random.pick([
    () => sound(random, random.below(6)),
    () => endless(random, 1 << random.below(13)),
    () => expression(random, 1 + random.below(4)),
    () => expression(random, 1 + random.below(4)),
  ])();
  return random.below(4) === 0 ? damaged(random, sql) : sql;
}

/** Returns requests with a number in each of their fields, or a random choice of them. */
function numberRequests(random: Random, count: number | undefined) {
  const methods = LanceNamespaceService.methods as readonly DescMethod[];
  const all = methods.flatMap(({ localName, input }) =>
    numberPlaces(localName as Operation, input).flatMap((place) =>
      valuesFor(place).map((value) => ({ operation: place.operation, request: requestWith(place, value) })),
    ),
  );
  return count === undefined ? all : Array.from({ length: count }, () => random.pick(all));
}

function call(client: LanceClient, operation: Operation, request: Init): Promise<unknown> {
  const method = client[operation] as (request: Init, body: Uint8Array) => Promise<unknown>;
  return method(request, personStream(people(2)));
}
