import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status } from "@grpc/grpc-js";
import { tableFromArrays, tableFromIPC, tableToIPC } from "apache-arrow";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey, type KeyRecord, type NewKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { openPolicyFolder } from "../../src/auth/cedar/policy-folder.ts";
import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import type { FlightData, FlightInfo } from "../../src/gen/arrow/flight/protocol/Flight_pb.ts";
import { CommandStatementQuerySchema } from "../../src/gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
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

/** The callers, each with a key, and the namespace of their names. */
const CALLERS = {
  owner: { role: "owner" },
  writer: { role: "writer" },
  reader: { role: "reader" },
  scoped: { role: "owner", scope: ["team"] },
} as const satisfies Record<string, Pick<KeyRecord, "role" | "scope">>;
type Caller = keyof typeof CALLERS;
const names = Object.keys(CALLERS) as Caller[];
const keys = Object.fromEntries(names.map((name) => [name, drawKey()])) as Record<Caller, NewKey>;

const commandOf = (text: string) => {
  const message = create(CommandStatementQuerySchema, { query: text });
  return toBinary(AnySchema, anyPack(CommandStatementQuerySchema, message)) as Uint8Array<ArrayBuffer>;
};
/** Returns the ticket with which LanceDB 0.41 sends a statement by DoGet: a message whose second field is the command. */
const ticketOf = (text: string) => {
  const command = commandOf(text);
  const length = [(command.length & 0x7f) | 0x80, command.length >> 7];
  return { ticket: Buffer.concat([Buffer.from([0x12, ...length]), command]) };
};

describe("materialized views by Flight SQL, as LanceDB 0.41 has them", () => {
  let server: DirectoryServer;
  let remove: () => Promise<void>;
  const clients = new Map<string, FlightClient>();
  const lines: string[] = [];

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
        return { ...facts, id: keys[name].id, name, ...CALLERS[name] };
      },
      close() {},
    };
    const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });
    const authorizer = await openPolicyFolder({ directory: policyDir, log: pino({ level: "silent" }) });
    const write = async (line: string) => void lines.push(line);
    const trail = { requireWritable() {}, write, close: async () => {} };
    server = await startDirectoryServer({}, { authenticator, authorizer, trail });
    const response = await fetch(`http://127.0.0.1:${server.port}/v1/namespace/team/create`, {
      method: "POST",
      headers: { "x-api-key": keys.owner.text, "content-type": "application/json" },
      body: "{}",
    });
    assert.equal(response.status, 200);
    for (const path of [["top"], ["team", "people"], ["team", "salaries"]])
      await clientOf("owner", "public").call(
        "doPut",
        ...toFlightData(personStream(people(3)), pathTo(...path), { write: "create" }),
      );
  });
  afterAll(async () => {
    for (const { close } of clients.values()) close();
    await server.close();
    await remove();
  });

  /** Returns the client of a caller whose names begin in a namespace, with the metadata of LanceDB 0.41. */
  function clientOf(caller: Caller | "nobody", namespacePath: string): FlightClient {
    const name = `${caller} in ${namespacePath}`;
    const key: Record<string, string> = caller === "nobody" ? {} : { "x-api-key": keys[caller].text };
    const headers = {
      ...key,
      ...{ "namespace-path": namespacePath, "x-request-id": "r", "lancedb-sql-protocol": "adaptive-v1" },
    };
    const client = clients.get(name) ?? connectFlight(server.port, headers);
    clients.set(name, client);
    return client;
  }
  const read = (data: readonly FlightData[]) =>
    tableFromIPC(fromFlightData(data))
      .toArray()
      .map((row) => row.toJSON());
  const sql = async (text: string, caller: Caller | "nobody" = "owner", namespacePath = "team") =>
    read(await clientOf(caller, namespacePath).call<FlightData>("doGet", ticketOf(text)));
  const failureOf = async (call: Promise<unknown>) => {
    const error: ServiceError = await call.then(
      () => assert.fail("the call succeeds"),
      (thrown) => thrown,
    );
    return [error.code, error.details] as const;
  };
  const namesIn = async (namespacePath = "team", caller: Caller = "owner", rest = "") =>
    (await sql(`SHOW MATERIALIZED VIEWS${rest} LIMIT 101`, caller, namespacePath)).map(({ name }) => name);

  test("are created with their rows, described, listed, refreshed and dropped", async () => {
    const made =
      'CREATE MATERIALIZED VIEW "few" AS SELECT id AS "id", id * 2 AS "twice" FROM "people" WHERE id > 0';
    lines.length = 0;
    assert.deepEqual(await sql(made), [{ Count: 2n }]);
    const entries = lines.map((line) => JSON.parse(line));
    assert.ok(
      entries.some(
        ({ operation, object, protocol }) =>
          operation === "CreateMaterializedView" && object === "team$few" && protocol === "flight",
      ),
      JSON.stringify(entries),
    );
    const [code, text] = await failureOf(sql(made));
    assert.deepEqual([code, /already exists/.test(text)], [status.ALREADY_EXISTS, true]);
    assert.deepEqual(await sql(made.replace("VIEW", "VIEW IF NOT EXISTS")), [{ Count: 0n }]);
    assert.deepEqual(await sql("SELECT twice FROM few ORDER BY id"), [{ twice: 2 }, { twice: 4 }]);
    assert.deepEqual(await sql('DESCRIBE MATERIALIZED VIEW "few"'), [
      {
        name: "few",
        query: 'SELECT id AS "id", id * 2 AS "twice" FROM "team"."people" WHERE id > 0',
        ...{ auto_refresh: false, source_version: 1n, version: 2n },
      },
    ]);
    await sql("INSERT INTO people (id) VALUES (7)");
    assert.deepEqual(await sql('REFRESH MATERIALIZED VIEW "few"'), [{ Count: 1n }]);
    assert.deepEqual(await sql('REFRESH MATERIALIZED VIEW "few" WITH (full = true)'), [{ Count: 3n }]);
    await sql(
      "CREATE MATERIALIZED VIEW other WITH (auto_refresh_enabled = true) AS SELECT * FROM team.people LIMIT 1",
    );
    assert.equal((await sql("DESCRIBE MATERIALIZED VIEW other"))[0]?.["auto_refresh"], true);
    assert.deepEqual(await namesIn(), ["few", "other"]);
    assert.deepEqual(await namesIn("team", "owner", " WHERE name > 'few'"), ["other"]);
    assert.deepEqual(await namesIn("public"), []);
    for (const name of ["few", "other"]) await sql(`DROP MATERIALIZED VIEW "${name}"`);
    assert.deepEqual(await namesIn(), []);
    assert.equal((await failureOf(sql('DROP MATERIALIZED VIEW "few"')))[0], status.NOT_FOUND);
    assert.deepEqual(await sql('DROP MATERIALIZED VIEW IF EXISTS "few"'), [{ Count: 0n }]);
    await sql("DELETE FROM people WHERE id = 7");
  });

  test("are created once by a ticket that is read twice", async () => {
    const text = "CREATE MATERIALIZED VIEW once AS SELECT id FROM people";
    const client = clientOf("owner", "team");
    const [info] = await client.call<FlightInfo>("getFlightInfo", { type: 2, cmd: commandOf(text) });
    for (let times = 0; times < 2; times++) {
      const data = await client.call<FlightData>("doGet", info?.endpoint[0]?.ticket as object);
      assert.deepEqual(read(data), [{ Count: 3n }]);
    }
    await sql("DROP MATERIALIZED VIEW once");
  });

  test("are told from tables", async () => {
    for (const text of [
      "DROP MATERIALIZED VIEW people",
      "REFRESH MATERIALIZED VIEW people",
      "DESCRIBE MATERIALIZED VIEW people",
    ])
      assert.match((await failureOf(sql(text)))[1], /the table is not a materialized view/, text);
    assert.equal((await sql("FROM people")).length, 3);
  });

  test("leave nothing behind a query that they cannot have", async () => {
    for (const [query, text] of [
      ["SELECT nope FROM people", /nope/],
      ["SELECT count(*) AS n FROM people", /count/],
      ["SELECT sum(id) AS n FROM people WHERE id > 0", /sum/],
      ["SELECT id FROM people WHERE id > 0 OFFSET 1", /OFFSET/],
      ["SELECT id + 1 FROM people", /needs a name/],
      ["SELECT id, id FROM people", /two columns/],
      ["SELECT row_number() OVER () AS n FROM people", /./],
      ["SELECT * FROM missing", /missing/],
      ["SELECT * FROM broken", /itself|broken/],
      ["SELECT * FROM a$b", /./],
    ] as const) {
      const [code, told] = await failureOf(sql(`CREATE MATERIALIZED VIEW broken AS ${query}`));
      assert.match(told, text);
      assert.ok(
        [status.INVALID_ARGUMENT, status.NOT_FOUND, status.UNIMPLEMENTED].includes(code),
        `${query}: ${code} ${told}`,
      );
    }
    assert.deepEqual(await namesIn(), []);
    assert.equal((await failureOf(sql("FROM broken")))[0], status.NOT_FOUND);
  });

  test("need the rights that their operations need, by every way to run a statement", async () => {
    await sql("CREATE MATERIALIZED VIEW kept AS SELECT id FROM people");
    await sql("CREATE MATERIALIZED VIEW above AS SELECT id FROM top", "owner", "public");
    await sql("CREATE MATERIALIZED VIEW pay AS SELECT id FROM salaries");
    const denied: readonly (readonly [Caller | "nobody", string, string])[] = [
      ["reader", "team", "CREATE MATERIALIZED VIEW own AS SELECT id FROM people"],
      ["reader", "team", "REFRESH MATERIALIZED VIEW kept"],
      ["reader", "team", "REFRESH MATERIALIZED VIEW kept WITH (full = true)"],
      ["reader", "team", "DROP MATERIALIZED VIEW kept"],
      ["writer", "team", "CREATE MATERIALIZED VIEW own AS SELECT id FROM salaries"],
      ["writer", "public", 'CREATE MATERIALIZED VIEW own AS SELECT id FROM "team"."salaries"'],
      ["writer", "public", "CREATE MATERIALIZED VIEW own AS SELECT id FROM lance.`team`.salaries"],
      ["writer", "team", 'CREATE MATERIALIZED VIEW own AS SELECT id FROM /**/ "salaries"'],
      ["scoped", "public", "CREATE MATERIALIZED VIEW team.own AS SELECT id FROM top"],
      ["scoped", "team", "CREATE MATERIALIZED VIEW own AS SELECT id FROM public.top"],
      ["scoped", "team", "CREATE MATERIALIZED VIEW public.own AS SELECT id FROM people"],
      ["scoped", "public", "REFRESH MATERIALIZED VIEW above"],
      ["scoped", "public", "DROP MATERIALIZED VIEW above"],
      ["scoped", "public", "DESCRIBE MATERIALIZED VIEW above"],
      ["scoped", "public", "SHOW MATERIALIZED VIEWS LIMIT 101"],
      ["nobody", "team", "CREATE MATERIALIZED VIEW own AS SELECT id FROM people"],
      ["nobody", "team", "REFRESH MATERIALIZED VIEW kept"],
      ["nobody", "team", "DESCRIBE MATERIALIZED VIEW kept"],
      ["nobody", "team", "SHOW MATERIALIZED VIEWS LIMIT 101"],
    ];
    for (const [caller, namespacePath, text] of denied) {
      const ways = {
        sent: () => sql(text, caller, namespacePath),
        async polled() {
          const descriptor = { type: 2, cmd: commandOf(text) };
          const client = clientOf(caller, namespacePath);
          const [info] = await client.call<FlightInfo>("getFlightInfo", descriptor);
          return client.call("doGet", info?.endpoint[0]?.ticket as object);
        },
      };
      for (const [way, run] of Object.entries(ways)) {
        const [code, told] = await failureOf(run());
        const wanted = text.includes("/**/")
          ? status.INVALID_ARGUMENT
          : caller === "nobody"
            ? status.UNAUTHENTICATED
            : status.PERMISSION_DENIED;
        assert.equal(code, wanted, `${caller}, ${way}: ${text}: ${told}`);
      }
    }
    assert.deepEqual(await sql("REFRESH MATERIALIZED VIEW kept", "writer"), [{ Count: 0n }]);
    assert.deepEqual(await namesIn("team", "reader"), ["kept", "pay"]);
    assert.deepEqual(await namesIn("team", "scoped"), ["kept", "pay"]);
    assert.deepEqual(await namesIn("public", "reader"), ["above"]);
    assert.equal((await sql("FROM kept", "reader")).length, 3);
    await sql("DROP MATERIALIZED VIEW kept", "scoped");
    await sql("DROP MATERIALIZED VIEW pay");
    await sql("DROP MATERIALIZED VIEW above", "owner", "public");
  });

  test("have names of every kind", async () => {
    const odd = ["a b", "ünï-\u{1f600}", "select", "x;--", 'it"s'];
    for (const name of odd) {
      const quoted = `"${name.replaceAll('"', '""')}"`;
      const [code, told] = await sql(`CREATE MATERIALIZED VIEW ${quoted} AS SELECT id FROM people`).then(
        () => [0, ""] as const,
        (error: ServiceError) => [error.code, error.details] as const,
      );
      if (code !== 0) {
        assert.match(told, /name/, name);
        continue;
      }
      assert.deepEqual(await namesIn("team"), [name]);
      assert.equal((await sql(`DESCRIBE MATERIALIZED VIEW ${quoted}`))[0]?.["name"], name);
      assert.deepEqual(await sql(`REFRESH MATERIALIZED VIEW ${quoted}`), [{ Count: 0n }]);
      await sql(`DROP MATERIALIZED VIEW ${quoted}`);
    }
    for (const name of ["a$b", "", "a/b", ".."])
      assert.equal(
        (await failureOf(sql(`CREATE MATERIALIZED VIEW "${name}" AS SELECT id FROM people`)))[0],
        status.INVALID_ARGUMENT,
        name,
      );
  });

  test("statements that are sent in place of a ticket run once, also with parameters", async () => {
    assert.deepEqual(await sql("SELECT 1 AS one"), [{ one: 1 }]);
    const client = clientOf("reader", "team");
    const row = tableToIPC(tableFromArrays({ a: Int32Array.of(1), b: ["p2"] }), "stream");
    const descriptor = (text: string): Descriptor => ({ type: 2, cmd: commandOf(text) });
    const text = "SELECT name FROM people WHERE id >= $1 AND name <> $2";
    const answers = await client.call<FlightData>("doExchange", ...toFlightData(row, descriptor(text)));
    assert.deepEqual(read(answers), [{ name: "p1" }]);
    const exchange = (query: string, rows = row) =>
      failureOf(client.call("doExchange", ...toFlightData(rows, descriptor(query))));
    assert.equal((await exchange("SELECT $1, $2 FROM salaries"))[0], status.PERMISSION_DENIED);
    assert.equal(
      (await exchange("DELETE FROM people WHERE id = $1 OR name = $2"))[0],
      status.PERMISSION_DENIED,
    );
    const two = tableToIPC(tableFromArrays({ a: Int32Array.of(1, 2) }), "stream");
    assert.equal((await exchange("SELECT $1", two))[0], status.UNIMPLEMENTED);
    for (const ticket of [[0x12, 0], [0x12, 5, 0x0a], [0x12, 2, 0x0a, 0], [0x0a, 0], []]) {
      const [code, told] = await failureOf(client.call("doGet", { ticket: Buffer.from(ticket) }));
      assert.deepEqual([code, told.includes("not from this gateway")], [status.INVALID_ARGUMENT, true]);
    }
    const behind = Buffer.concat([ticketOf("SELECT 1").ticket, Buffer.from([0x12, 0])]);
    assert.equal((await failureOf(client.call("doGet", { ticket: behind })))[0], status.INVALID_ARGUMENT);
  });
});
