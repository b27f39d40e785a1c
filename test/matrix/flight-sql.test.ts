import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { AnySchema, anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status } from "@grpc/grpc-js";
import { tableFromIPC } from "apache-arrow";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey, type KeyRecord, type NewKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { openPolicyFolder } from "../../src/auth/cedar/policy-folder.ts";
import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import {
  CancelFlightInfoRequestSchema,
  type FlightData,
  type FlightInfo,
  type PollInfo,
  type PutResult,
  type Result,
  type SchemaResult,
} from "../../src/gen/arrow/flight/protocol/Flight_pb.ts";
import * as sql from "../../src/gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import {
  connectFlight,
  type Descriptor,
  type FlightClient,
  fromFlightData,
  pathTo,
  toFlightData,
} from "../support/flight.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const POLICIES = `
@id("no-salaries")
forbid (principal, action, resource == Table::"team$salaries") unless { principal in Role::"owner" };
`;

/** The callers, each with a key. */
const CALLERS = {
  owner: { role: "owner" },
  reader: { role: "reader" },
  scoped: { role: "owner", scope: ["team"] },
} as const satisfies Record<string, Pick<KeyRecord, "role" | "scope">>;
type Caller = keyof typeof CALLERS;
const names = Object.keys(CALLERS) as Caller[];
const keys = Object.fromEntries(names.map((name) => [name, drawKey()])) as Record<Caller, NewKey>;

/** Returns the status and the text of a call's error. */
async function failureOf(call: Promise<unknown>): Promise<{ code: number; text: string }> {
  const error: ServiceError = await call.then(
    () => assert.fail("the call succeeds"),
    (thrown) => thrown,
  );
  return { code: error.code, text: error.details };
}

const packed = <D extends DescMessage>(schema: D, init: MessageInitShape<D> = {} as never): Uint8Array =>
  toBinary(AnySchema, anyPack(schema, create(schema, init)));
const command = <D extends DescMessage>(schema: D, init?: MessageInitShape<D>): Descriptor => ({
  type: 2,
  cmd: packed(schema, init) as Uint8Array<ArrayBuffer>,
});
const query = (text: string) => command(sql.CommandStatementQuerySchema, { query: text });

describe("Flight SQL", () => {
  let server: DirectoryServer;
  let remove: () => Promise<void>;
  const clients = new Map<string, FlightClient>();
  const lines: string[] = [];
  /** Scopes that callers have lost something by. */
  const narrowed: Partial<Record<Caller, Pick<KeyRecord, "scope">>> = {};
  const as = (caller: string) => clients.get(caller) as FlightClient;

  beforeAll(async () => {
    const directory = await temporaryDirectory();
    remove = directory.remove;
    const policyDir = join(directory.path, "policies");
    await mkdir(policyDir);
    await writeFile(join(policyDir, "all.cedar"), rolePolicies() + POLICIES);
    const ring = {
      find(text: string): KeyRecord | "unknown" {
        const name = names.find((each) => keys[each].text === text);
        if (name === undefined) return "unknown";
        const facts = { hash: "", created: "2026-01-01T00:00:00.000Z" };
        return { ...facts, id: keys[name].id, name, ...CALLERS[name], ...narrowed[name] };
      },
      close() {},
    };
    const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });
    const authorizer = await openPolicyFolder({ directory: policyDir, log: pino({ level: "silent" }) });
    const write = async (line: string) => void lines.push(line);
    const trail = { requireWritable() {}, write, close: async () => {} };
    server = await startDirectoryServer({}, { authenticator, authorizer, trail });
    for (const name of names)
      clients.set(name, connectFlight(server.port, { authorization: `Bearer ${keys[name].text}` }));
    clients.set("nobody", connectFlight(server.port));
    const inTeam = { authorization: `Bearer ${keys.scoped.text}`, "namespace-path": "team" };
    clients.set("scoped in team", connectFlight(server.port, inTeam));
    const response = await fetch(`http://127.0.0.1:${server.port}/v1/namespace/team/create`, {
      method: "POST",
      headers: { "x-api-key": keys.owner.text, "content-type": "application/json" },
      body: "{}",
    });
    assert.equal(response.status, 200);
    for (const path of [["top"], ["team", "people"], ["team", "salaries"]])
      await as("owner").call(
        "doPut",
        ...toFlightData(personStream(people(3)), pathTo(...path), { write: "create" }),
      );
  });
  afterAll(async () => {
    for (const { close } of clients.values()) close();
    await server.close();
    await remove();
  });

  const infoOf = async (caller: string, descriptor: object) =>
    (await as(caller).call<FlightInfo>("getFlightInfo", descriptor))[0] as FlightInfo;
  const read = async (caller: string, { endpoint }: FlightInfo) => {
    const data = await as(caller).call<FlightData>("doGet", endpoint[0]?.ticket as object);
    return tableFromIPC(fromFlightData(data))
      .toArray()
      .map((row) => row.toJSON());
  };
  const rows = async (caller: string, descriptor: object) => read(caller, await infoOf(caller, descriptor));
  const act = async (caller: string, type: string, body: Uint8Array) =>
    (await as(caller).call<Result>("doAction", { type, body }))[0] as Result;
  const prepare = async (caller: string, text: string) => {
    const body = packed(sql.ActionCreatePreparedStatementRequestSchema, { query: text });
    const result = await act(caller, "CreatePreparedStatement", body);
    const any = fromBinary(AnySchema, result.body);
    return anyUnpack(any, sql.ActionCreatePreparedStatementResultSchema) as NonNullable<
      ReturnType<typeof anyUnpack<typeof sql.ActionCreatePreparedStatementResultSchema>>
    >;
  };
  const byHandle = (preparedStatementHandle: Uint8Array) =>
    command(sql.CommandPreparedStatementQuerySchema, { preparedStatementHandle } as never);
  const bind = async (caller: string, handle: Uint8Array, stream: Uint8Array) => {
    const [result] = await as(caller).call<PutResult>("doPut", ...toFlightData(stream, byHandle(handle)));
    const bound = fromBinary(
      sql.DoPutPreparedStatementResultSchema,
      (result as PutResult).appMetadata,
    ).preparedStatementHandle;
    return bound as Uint8Array;
  };

  test("runs a statement over the caller's tables", async () => {
    const joined = "SELECT a.id FROM top a JOIN team.people b ON a.id = b.id WHERE a.id > 0 ORDER BY 1";
    assert.equal(String((await rows("owner", query(joined))).map(({ id }) => id)), "1,2");
    const info = await infoOf("reader", query("SELECT 1 AS one"));
    const [schema] = await as("reader").call<SchemaResult>("getSchema", query("SELECT 1 AS one"));
    assert.deepEqual(schema?.schema, info.schema);
    assert.deepEqual(await read("reader", info), [{ one: 1 }]);
    const [polled] = await as("reader").call<PollInfo>("pollFlightInfo", query("SELECT 2 AS two"));
    assert.equal(polled?.flightDescriptor, undefined);
    assert.deepEqual(await read("reader", polled?.info as FlightInfo), [{ two: 2 }]);
    assert.equal((await rows("scoped in team", query("FROM people"))).length, 3);
  });

  test("a statement without tables has lines in the audit log, as one with tables has", async () => {
    const entriesOf = async (text: string) => {
      const info = await infoOf("reader", query(text));
      const described = lines.length;
      lines.length = 0;
      await read("reader", info);
      return [described, lines.length].map((count) => count > 0);
    };
    for (const text of ["SELECT 1", "SELECT 1", "FROM top"]) {
      lines.length = 0;
      assert.deepEqual(await entriesOf(text), [true, true], text);
      assert.ok(lines.every((line) => line.includes('"reader"')));
    }
    lines.length = 0;
    await prepare("reader", "SELECT 1");
    assert.equal(lines.length, 1);
  });

  test("opens the tables of a statement once for GetFlightInfo and DoGet", async () => {
    // A table that is opened is described, or seen to be as it was; its rows are counted in both cases.
    const opens = () => lines.filter((line) => JSON.parse(line)["operation"] === "CountTableRows").length;
    lines.length = 0;
    const info = await infoOf("owner", query("SELECT max(id) FROM top"));
    assert.equal(opens(), 1);
    lines.length = 0;
    await read("owner", info);
    assert.ok(lines.length > 0);
    assert.equal(opens(), 0);
    lines.length = 0;
    // The ticket is enough to start over.
    await read("owner", info);
    assert.equal(opens(), 1);
  });

  test("reads nothing for a caller whose rights have ended since GetFlightInfo", async () => {
    const infos = [
      await infoOf("reader", query("SELECT max(id) FROM top")),
      await infoOf("reader", query("FROM top LIMIT 1")),
    ];
    narrowed.reader = { scope: ["team"] };
    try {
      for (const info of infos)
        assert.equal((await failureOf(read("reader", info))).code, status.PERMISSION_DENIED);
    } finally {
      delete narrowed.reader;
    }
  });

  test("reads no table that the caller may not read", async () => {
    const statements = [
      "SELECT * FROM team.salaries",
      'SELECT * FROM "team"."salaries"',
      "SELECT * FROM lance.team.salaries",
      "WITH s AS (FROM team.salaries) SELECT count(*) FROM s",
      "SELECT (SELECT max(id) FROM team.salaries)",
      "FROM top t, LATERAL (SELECT * FROM team.salaries s WHERE s.id = t.id)",
      "FROM top UNION ALL FROM team.salaries",
      "DESCRIBE team.salaries",
      "SUMMARIZE team.salaries",
      "EXPLAIN FROM team.salaries",
      "FROM lance_vector_search('team.salaries', 'id', [1])",
      "SELECT 1 FROM top, lance_fts('team.salaries', 'name', 'ada', filter = 'true')",
    ];
    const denied = [status.PERMISSION_DENIED, status.NOT_FOUND];
    for (const text of statements) {
      for (const name of ["getFlightInfo", "getSchema", "pollFlightInfo"] as const) {
        const { code, text: told } = await failureOf(as("reader").call(name, query(text)));
        assert.ok(denied.includes(code), `${name} ${text}: ${code} ${told}`);
      }
      assert.ok(denied.includes((await failureOf(prepare("reader", text))).code), text);
    }
    assert.deepEqual(await rows("owner", query("SHOW TABLES FROM team")), [
      { name: "people" },
      { name: "salaries" },
    ]);
    assert.deepEqual(await rows("reader", query("SHOW TABLES FROM team")), [{ name: "people" }]);
    for (const text of ["FROM top", "SELECT * FROM team.people, top"])
      assert.ok(denied.includes((await failureOf(infoOf("scoped", query(text)))).code), text);
    assert.equal((await rows("scoped", query("FROM team.people"))).length, 3);
    assert.equal((await failureOf(infoOf("nobody", query("SELECT 1")))).code, status.UNAUTHENTICATED);
  });

  test("refuses another caller's tickets and handles, also of statements without tables", async () => {
    for (const text of ["SELECT 1", "FROM top", "FROM team.salaries"]) {
      const info = await infoOf("owner", query(text));
      const { preparedStatementHandle } = await prepare("owner", text);
      const body = toBinary(CancelFlightInfoRequestSchema, create(CancelFlightInfoRequestSchema, { info }));
      const close = packed(sql.ActionClosePreparedStatementRequestSchema, { preparedStatementHandle });
      for (const call of [
        () => read("reader", info),
        () => act("reader", "CancelFlightInfo", body),
        () => infoOf("reader", byHandle(preparedStatementHandle)),
        () => bind("reader", preparedStatementHandle, personStream(people(1))),
        () => act("reader", "ClosePreparedStatement", close),
      ])
        assert.equal((await failureOf(call())).code, status.PERMISSION_DENIED, text);
      assert.equal((await act("owner", "ClosePreparedStatement", close)).body.byteLength, 0);
    }
    const tables = await infoOf("owner", command(sql.CommandGetTablesSchema));
    assert.equal((await failureOf(read("reader", tables))).code, status.PERMISSION_DENIED);
    const { preparedStatementHandle: handle } = await prepare("owner", "SELECT 1");
    const ticket = { endpoint: [{ ticket: { ticket: handle } }] } as never;
    assert.equal((await failureOf(read("owner", ticket))).code, status.INVALID_ARGUMENT);
    const forged = byHandle(Buffer.from("forged"));
    assert.equal((await failureOf(infoOf("owner", forged))).code, status.INVALID_ARGUMENT);
  });

  test("runs a prepared statement with parameters", async () => {
    const { preparedStatementHandle, parameterSchema } = await prepare(
      "reader",
      "SELECT name FROM top WHERE id >= $1 AND name <> $2 AND $3 ORDER BY id",
    );
    assert.ok(parameterSchema.byteLength > 0);
    const { tableToIPC, tableFromArrays } = await import("apache-arrow");
    const row = tableFromArrays({ id: Int32Array.of(1), name: ["p2"], last: [true] });
    const bound = await bind("reader", preparedStatementHandle, tableToIPC(row, "stream"));
    assert.deepEqual(await rows("reader", byHandle(bound)), [{ name: "p1" }]);
    const unbound = await infoOf("reader", byHandle(preparedStatementHandle));
    assert.equal((await failureOf(read("reader", unbound))).code, status.INVALID_ARGUMENT);
    const many = tableToIPC(tableFromArrays({ id: Int32Array.of(1, 2) }), "stream");
    const { code } = await failureOf(bind("reader", preparedStatementHandle, many));
    assert.equal(code, status.UNIMPLEMENTED);
  });

  test("tells what the caller may see of the catalog", async () => {
    assert.deepEqual(await rows("reader", command(sql.CommandGetCatalogsSchema)), [
      { catalog_name: "lance" },
    ]);
    const schemas = await rows("reader", command(sql.CommandGetDbSchemasSchema));
    assert.deepEqual(
      schemas.map(({ db_schema_name }) => db_schema_name),
      ["public", "team"],
    );
    const listed = async (caller: string, init: MessageInitShape<typeof sql.CommandGetTablesSchema> = {}) =>
      (await rows(caller, command(sql.CommandGetTablesSchema, init))).map(
        (row) => `${row["catalog_name"]}.${row["db_schema_name"]}.${row["table_name"]}`,
      );
    assert.deepEqual(await listed("reader"), ["lance.public.top", "lance.team.people"]);
    assert.deepEqual(await listed("owner", { dbSchemaFilterPattern: "te_m" }), [
      "lance.team.people",
      "lance.team.salaries",
    ]);
    assert.deepEqual(await listed("owner", { tableNameFilterPattern: "%o%e" }), ["lance.team.people"]);
    assert.deepEqual(await listed("owner", { catalog: "other" }), []);
    assert.deepEqual(await listed("owner", { tableTypes: ["VIEW"] }), []);
    const views = { tableTypes: ["VIEW"], includeSchema: true };
    await update("owner", "CREATE VIEW team.few AS SELECT id FROM team.people WHERE id < 2");
    await update("owner", "CREATE VIEW pay AS FROM team.salaries");
    assert.deepEqual(await listed("reader", { tableTypes: ["VIEW"] }), [
      "lance.public.pay",
      "lance.team.few",
    ]);
    assert.deepEqual(await listed("scoped in team", { tableTypes: ["VIEW"] }), ["lance.team.few"]);
    assert.deepEqual(await listed("reader", { dbSchemaFilterPattern: "team" }), [
      "lance.team.few",
      "lance.team.people",
    ]);
    const described = await rows("reader", command(sql.CommandGetTablesSchema, views));
    assert.deepEqual(
      described.map(({ table_name, table_type }) => [table_name, table_type]),
      [
        ["pay", "VIEW"],
        ["few", "VIEW"],
      ],
    );
    const few = Buffer.concat([described[1]?.["table_schema"], Buffer.from("ffffffff00000000", "hex")]);
    assert.deepEqual(
      tableFromIPC(few).schema.fields.map(({ name }) => name),
      ["id"],
    );
    assert.deepEqual(await rows("reader", query("FROM team.few")), [{ id: 0 }, { id: 1 }]);
    assert.equal((await failureOf(rows("reader", query("FROM pay")))).code, status.PERMISSION_DENIED);
    for (const name of ["team.few", "pay"]) await update("owner", `DROP VIEW ${name}`);
    assert.deepEqual(await listed("scoped in team"), ["lance.team.people", "lance.team.salaries"]);
    assert.equal((await failureOf(listed("scoped"))).code, status.PERMISSION_DENIED);
    const [first] = await rows("reader", command(sql.CommandGetTablesSchema, { includeSchema: true }));
    const table = tableFromIPC(
      Buffer.concat([first?.["table_schema"], Buffer.from("ffffffff00000000", "hex")]),
    );
    assert.deepEqual(
      table.schema.fields.map(({ name }) => name),
      ["id", "name", "vector"],
    );
    assert.deepEqual(await rows("reader", command(sql.CommandGetTableTypesSchema)), [
      { table_type: "TABLE" },
      { table_type: "VIEW" },
    ]);
    assert.deepEqual(await rows("reader", command(sql.CommandGetPrimaryKeysSchema, { table: "top" })), []);
    for (const schema of [sql.CommandGetExportedKeysSchema, sql.CommandGetImportedKeysSchema])
      assert.deepEqual(await rows("reader", command(schema, { table: "top" })), []);
    const between = command(sql.CommandGetCrossReferenceSchema, { pkTable: "top", fkTable: "top" });
    assert.deepEqual(await rows("reader", between), []);
    const types = await rows("reader", command(sql.CommandGetXdbcTypeInfoSchema, { dataType: 12 }));
    assert.deepEqual(
      types.map(({ type_name }) => type_name),
      ["VARCHAR"],
    );
    const info = await rows("reader", command(sql.CommandGetSqlInfoSchema, { info: [0, 3, 8, 9999] }));
    assert.deepEqual(
      info.map(({ info_name, value }) => [info_name, value]),
      [
        [0, "Lance Gateway"],
        [3, false],
        [8, 0],
      ],
    );
  });

  /** Runs a statement that changes rows, and returns their number. */
  async function update(caller: string, text: string): Promise<bigint> {
    const descriptor = command(sql.CommandStatementUpdateSchema, { query: text });
    const [result] = await as(caller).call<PutResult>("doPut", { flightDescriptor: descriptor });
    return fromBinary(sql.DoPutUpdateResultSchema, (result as PutResult).appMetadata).recordCount;
  }

  test("statements write as their caller may, by every way to run them", async () => {
    assert.equal(await update("owner", "CREATE TABLE team.made AS SELECT id FROM team.people"), 3n);
    assert.deepEqual(await rows("owner", query("INSERT INTO team.made VALUES (10), (11)")), [{ Count: 2n }]);
    assert.equal(
      await update("scoped in team", "INSERT INTO made SELECT id + 10 FROM made WHERE id >= 10"),
      2n,
    );
    assert.equal((await rows("owner", query("FROM team.made"))).length, 7);
    assert.equal(await update("owner", "UPDATE team.made SET id = 100 WHERE id > 15"), 2n);
    assert.equal(await update("owner", "DELETE FROM team.made WHERE id = 10 OR id = 11"), 2n);
    const statements = [
      "INSERT INTO team.made VALUES (1)",
      "UPDATE team.made SET id = 1",
      "DELETE FROM team.made",
      "CREATE TABLE team.own AS SELECT 1 AS one",
      "CREATE OR REPLACE TABLE team.made AS SELECT 1 AS one",
      "DROP TABLE team.made",
    ];
    for (const text of statements) {
      assert.equal((await failureOf(update("reader", text))).code, status.PERMISSION_DENIED, text);
      const { code } = await failureOf(rows("reader", query(text)));
      assert.equal(code, status.PERMISSION_DENIED, text);
    }
    for (const text of [
      "INSERT INTO top SELECT 1",
      "CREATE TABLE own AS SELECT 1 AS one",
      "DELETE FROM top",
      "DROP TABLE top",
    ])
      assert.equal((await failureOf(update("scoped", text))).code, status.PERMISSION_DENIED, text);
    // A policy keeps the table from everybody but an owner.
    const copy = "INSERT INTO team.made SELECT id FROM team.salaries";
    assert.equal((await failureOf(update("reader", copy))).code, status.PERMISSION_DENIED);
    assert.equal((await rows("owner", query("FROM team.made"))).length, 5);
    assert.equal((await failureOf(update("owner", "SELECT 1"))).code, status.INVALID_ARGUMENT);
    assert.equal(await update("owner", "DROP TABLE team.made"), 0n);
  });

  test("a ticket of a statement that writes changes its table once", async () => {
    await update("owner", "CREATE TABLE team.once AS SELECT 1 AS one");
    const info = await infoOf("owner", query("INSERT INTO team.once VALUES (2)"));
    const ticket = info.endpoint[0]?.ticket;
    for (let times = 0; times < 2; times++) await as("owner").call("doGet", ticket as never);
    assert.equal((await rows("owner", query("FROM team.once"))).length, 2);
    await update("owner", "DROP TABLE team.once");
  });

  test("ingests rows", async () => {
    const options = (ifNotExist: number, ifExists: number) => ({ ifNotExist, ifExists }) as never;
    const [create, fail, append, replace] = [options(1, 1), options(2, 2), options(1, 2), options(1, 3)];
    const put = async (
      caller: string,
      init: MessageInitShape<typeof sql.CommandStatementIngestSchema>,
      n = 2,
    ) => {
      const descriptor = command(sql.CommandStatementIngestSchema, init);
      const [result] = await as(caller).call<PutResult>(
        "doPut",
        ...toFlightData(personStream(people(n)), descriptor),
      );
      return fromBinary(sql.DoPutUpdateResultSchema, (result as PutResult).appMetadata).recordCount;
    };
    const to = (tableDefinitionOptions: never) => ({ table: "rows", schema: "team", tableDefinitionOptions });
    const count = async () => (await rows("owner", query("FROM team.rows"))).length;
    assert.equal((await failureOf(put("owner", to(fail)))).code, status.NOT_FOUND);
    assert.equal(await put("owner", to(append)), 2n);
    assert.equal(await put("owner", to(append), 3), 3n);
    assert.equal(await put("owner", to(fail)), 2n);
    assert.equal(await count(), 7);
    assert.equal((await failureOf(put("owner", to(create)))).code, status.ALREADY_EXISTS);
    assert.equal(await put("owner", to(replace), 1), 1n);
    assert.equal(await count(), 1);
    for (const each of [create, fail, append, replace])
      assert.equal((await failureOf(put("reader", to(each)))).code, status.PERMISSION_DENIED);
    const outside = { table: "top", tableDefinitionOptions: fail };
    assert.equal((await failureOf(put("scoped", outside))).code, status.PERMISSION_DENIED);
    for (const wrong of [{ temporary: true }, { transactionId: Buffer.of(1) }, { catalog: "other" }]) {
      const { code } = await failureOf(put("owner", { ...to(append), ...wrong } as never));
      assert.equal(code, status.UNIMPLEMENTED);
    }
  });

  test("ends a statement that its owner cancels", async () => {
    const info = await infoOf(
      "owner",
      query("SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c"),
    );
    const body = toBinary(CancelFlightInfoRequestSchema, create(CancelFlightInfoRequestSchema, { info }));
    const running = failureOf(read("owner", info));
    const cancelled = Buffer.of(8, 1);
    for (let tries = 0; ; tries++) {
      assert.ok(tries < 100, "the statement does not run");
      if (Buffer.from((await act("owner", "CancelFlightInfo", body)).body).equals(cancelled)) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.equal((await running).code, status.CANCELLED);
    assert.deepEqual(await rows("owner", query("SELECT 3 AS three")), [{ three: 3 }]);
  });
});
