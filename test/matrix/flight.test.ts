import assert from "node:assert/strict";
import { connect } from "node:http2";
import { create, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, test } from "vitest";
import {
  BasicAuthSchema,
  CancelFlightInfoRequestSchema,
  CancelFlightInfoResultSchema,
  CancelStatus,
  type FlightData,
  FlightDataSchema,
  FlightEndpointSchema,
  type FlightInfo,
  type PollInfo,
  type PutResult,
  RenewFlightEndpointRequestSchema,
  type Result,
  type SchemaResult,
} from "../../src/gen/arrow/flight/protocol/Flight_pb.ts";
import { CommandStatementQuerySchema } from "../../src/gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { encodeFrame } from "../../src/wires/grpc/frame.ts";
import { people, personStream, rowsOf } from "../support/arrow.ts";
import {
  commandOf,
  connectFlight,
  type FlightClient,
  fromFlightData,
  pathTo,
  toFlightData,
} from "../support/flight.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

/** Returns the status and the text of a call's error. */
async function failureOf(call: Promise<unknown>): Promise<{ code: number; text: string }> {
  const error: ServiceError = await call.then(
    () => assert.fail("the call succeeds"),
    (thrown) => thrown,
  );
  return { code: error.code, text: error.details };
}

describe("Arrow Flight", () => {
  let server: DirectoryServer;
  let client: FlightClient;
  beforeAll(async () => {
    server = await startDirectoryServer();
    client = connectFlight(server.port);
    const { gRPC } = createProtocolClients(server.port);
    await gRPC?.client.createNamespace({ id: ["team"] });
    await gRPC?.client.createTable({ id: ["people"] }, personStream(people(5)));
    await gRPC?.client.createTable({ id: ["team", "people"] }, personStream(people(3)));
    await gRPC?.client.declareTable({ id: ["empty"] });
    gRPC?.close();
  });
  afterAll(async () => {
    client.close();
    await server.close();
  });

  const infoOf = async (descriptor: object) =>
    (await client.call<FlightInfo>("getFlightInfo", descriptor))[0] as FlightInfo;
  const read = async ({ endpoint }: FlightInfo) =>
    rowsOf(fromFlightData(await client.call<FlightData>("doGet", endpoint[0]?.ticket as object)));
  const put = async (messages: readonly object[]) =>
    JSON.parse(
      Buffer.from(
        ((await client.call<PutResult>("doPut", ...messages))[0] as PutResult).appMetadata,
      ).toString(),
    );
  const count = async (...path: string[]) => Number((await infoOf(pathTo(...path))).totalRecords);

  test("describes a table and reads its rows", async () => {
    const info = await infoOf(pathTo("people"));
    assert.equal(info.totalRecords, 5n);
    assert.equal((await read(info)).length, 5);
    const [result] = await client.call<SchemaResult>("getSchema", pathTo("people"));
    assert.deepEqual(result?.schema, info.schema);
    const [polled] = await client.call<PollInfo>("pollFlightInfo", pathTo("people"));
    assert.equal(polled?.flightDescriptor, undefined);
    assert.equal((await read(polled?.info as FlightInfo)).length, 5);
  });

  test("reads the version that a table had when it was described", async () => {
    await put(toFlightData(personStream(people(2)), pathTo("versions"), { write: "create" }));
    const info = await infoOf(pathTo("versions"));
    await put(toFlightData(personStream(people(2)), pathTo("versions")));
    assert.equal((await read(info)).length, 2);
    assert.equal(await count("versions"), 4);
  });

  test("reads the rows of a query", async () => {
    const query = { id: ["people"], filter: "id >= 3", columns: { column_names: ["name"] } };
    const info = await infoOf(commandOf(query));
    assert.equal(info.totalRecords, -1n);
    assert.deepEqual(await read(info), [{ name: "p3" }, { name: "p4" }]);
    const search = await infoOf(commandOf({ id: ["people"], vector: { single_vector: [4, 0] }, k: 1 }));
    assert.deepEqual(
      (await read(search)).map(({ id }) => id),
      [4],
    );
  });

  test("lists the tables that have data", async () => {
    const paths = async (expression = "") =>
      (await client.call<FlightInfo>("listFlights", { expression: Buffer.from(expression) })).map(
        ({ flightDescriptor }) => flightDescriptor?.path.join("/"),
      );
    const all = await paths();
    assert.ok(all.includes("people") && all.includes("team/people") && !all.includes("empty"), String(all));
    assert.deepEqual(await paths('{"namespace": ["team"]}'), ["team/people"]);
    const [listed] = await client.call<FlightInfo>("listFlights", {
      expression: Buffer.from('{"namespace": ["team"]}'),
    });
    assert.equal((await read(listed as FlightInfo)).length, 3);
  });

  test("reads names from the namespace in the metadata, whose root is also called public", async () => {
    const own = connectFlight(server.port, { "namespace-path": "team", database: "any" });
    const [info] = await own.call<FlightInfo>("getFlightInfo", pathTo("people"));
    assert.equal(info?.totalRecords, 3n);
    const listed = await own.call<FlightInfo>("listFlights", {});
    assert.deepEqual(listed[0]?.flightDescriptor?.path, ["people"]);
    own.close();
    const root = connectFlight(server.port, { "namespace-path": "public" });
    const [of] = await root.call<FlightInfo>("getFlightInfo", pathTo("people"));
    assert.equal(of?.totalRecords, 5n);
    root.close();
  });

  test.each([
    ["a table that does not exist", pathTo("missing"), status.NOT_FOUND, "was not found"],
    ["a path without names", pathTo(), status.INVALID_ARGUMENT, "names no table"],
    ["an unknown descriptor", {}, status.INVALID_ARGUMENT, "a path or a command"],
    [
      "an unknown command of Flight SQL",
      { type: 2, cmd: Buffer.from([0x0a, 1, 0x61]) },
      status.UNIMPLEMENTED,
      "Flight SQL",
    ],
    [
      "a command that is not JSON",
      { type: 2, cmd: Buffer.from("{") },
      status.INVALID_ARGUMENT,
      "not valid JSON",
    ],
    ["an unknown field", commandOf({ id: ["people"], limit: 1 }), status.INVALID_ARGUMENT, '"limit"'],
    [
      "a caller in the command",
      commandOf({ id: ["people"], identity: {} }),
      status.INVALID_ARGUMENT,
      "identity",
    ],
  ])("refuses %s", async (_, descriptor, code, text) => {
    for (const name of ["getFlightInfo", "getSchema"] as const) {
      const failure = await failureOf(client.call(name, descriptor));
      assert.equal(failure.code, code);
      assert.ok(failure.text.includes(text), failure.text);
    }
  });

  test("refuses tickets that it has not made", async () => {
    const info = await infoOf(pathTo("people"));
    const ticket = Buffer.from(info.endpoint[0]?.ticket?.ticket as Uint8Array);
    const changed = Buffer.from(ticket);
    changed[ticket.length - 1] = (changed.at(-1) as number) ^ 1;
    for (const forged of [changed, ticket.subarray(0, 20), Buffer.alloc(0), Buffer.from("people")]) {
      const failure = await failureOf(client.call("doGet", { ticket: forged }));
      assert.deepEqual(failure, {
        code: status.INVALID_ARGUMENT,
        text: "the ticket is not from this gateway",
      });
    }
  });

  test("refuses the statement of a caller with other credentials, also where no caller is known", async () => {
    const [one, other] = ["one", "other"].map((key) => connectFlight(server.port, { "x-api-key": key }));
    const command = anyPack(
      CommandStatementQuerySchema,
      create(CommandStatementQuerySchema, { query: "SELECT 1" }),
    );
    const statement = { type: 2, cmd: toBinary(AnySchema, command) };
    const [info] = (await one?.call<FlightInfo>("getFlightInfo", statement)) ?? [];
    const ticket = info?.endpoint[0]?.ticket as object;
    assert.equal(rowsOf(fromFlightData((await one?.call<FlightData>("doGet", ticket)) ?? [])).length, 1);
    const failure = await failureOf(other?.call("doGet", ticket) as Promise<unknown>);
    assert.equal(failure.code, status.PERMISSION_DENIED);
    one?.close();
    other?.close();
  });

  test("writes rows in every way, with options in the command or beside the rows", async () => {
    const rows = personStream(people(2));
    const created = await put(toFlightData(rows, pathTo("written"), { write: "create" }));
    assert.equal(created.version, 1);
    const exists = await failureOf(put(toFlightData(rows, pathTo("written"), { write: "create" })));
    assert.equal(exists.code, status.ALREADY_EXISTS);
    await put(toFlightData(rows, pathTo("written"), { write: "exist_ok" }));
    assert.equal(await count("written"), 2);
    await put(toFlightData(rows, pathTo("written")));
    assert.equal(await count("written"), 4);
    await put(toFlightData(rows, commandOf({ write: "overwrite", id: ["written"] })));
    assert.equal(await count("written"), 2);
    const merge = {
      write: "merge",
      on: ["id"],
      when_matched_update_all: true,
      when_not_matched_insert_all: true,
    };
    const [schema, ...batches] = toFlightData(personStream(people(3, 1)), pathTo("written"));
    // Some clients can send options only after the schema.
    const merged = await put([
      schema as object,
      { appMetadata: Buffer.from(JSON.stringify(merge)) },
      ...batches,
    ]);
    assert.deepEqual([merged.num_updated_rows, merged.num_inserted_rows], [1, 2]);
    assert.equal(await count("written"), 4);
    await put(toFlightData(personStream(people(7)), pathTo("written"), { write: "replace" }));
    assert.equal(await count("written"), 7);
    await put(toFlightData(personStream([]), pathTo("without"), { write: "create" }));
    assert.equal(await count("without"), 0);
  });

  test("refuses options that it does not know", async () => {
    const rows = personStream(people(1));
    for (const [messages, text] of [
      [toFlightData(rows, pathTo("people"), { write: "upsert" }), '"upsert"'],
      [toFlightData(rows, pathTo("people"), { mode: "append" }), "mode"],
      [toFlightData(rows, pathTo("people"), { id: ["other"] }), "names the table"],
      [toFlightData(rows, commandOf({ id: ["people"] }), { write: "append" }), "not both"],
      [toFlightData(rows), "a descriptor"],
      [[{ flightDescriptor: pathTo("people") }], "no schema"],
      [[...toFlightData(rows, pathTo("people")), { appMetadata: Buffer.from("{}") }], "app_metadata"],
    ] as const) {
      const failure = await failureOf(client.call("doPut", ...messages));
      assert.equal(failure.code, status.INVALID_ARGUMENT);
      assert.ok(failure.text.includes(text), failure.text);
    }
    assert.equal(await count("people"), 5);
  });

  test("commits nothing of a stream that breaks off", async () => {
    const messages = toFlightData(personStream(people(4)), pathTo("people"), { write: "append" });
    for (const end of ["reset", "connection"] as const) {
      const session = connect(`http://127.0.0.1:${server.port}`);
      session.on("error", () => {});
      const stream = session.request({
        ":method": "POST",
        ":path": "/arrow.flight.protocol.FlightService/DoPut",
        "content-type": "application/grpc",
      });
      stream.on("error", () => {});
      for (const message of messages)
        stream.write(encodeFrame(toBinary(FlightDataSchema, create(FlightDataSchema, message)), false));
      await new Promise((resolve) => setTimeout(resolve, 200));
      const closed = new Promise((resolve) => stream.on("close", resolve));
      if (end === "reset") stream.close(8);
      else session.destroy();
      await closed;
      await new Promise((resolve) => setTimeout(resolve, 200));
      session.destroy();
      assert.equal(await count("people"), 5, end);
    }
  });

  test("lists its actions, ends reads and renews tickets", async () => {
    const types = (await client.call<{ type: string }>("listActions", {})).map(({ type }) => type);
    const prepared = ["CreatePreparedStatement", "ClosePreparedStatement"];
    assert.deepEqual(types, ["CancelFlightInfo", "RenewFlightEndpoint", "CloseSession", ...prepared]);
    const info = await infoOf(pathTo("people"));
    const act = async (type: string, body: Uint8Array) =>
      ((await client.call<Result>("doAction", { type, body }))[0] as Result).body;
    const [endpoint] = info.endpoint;
    const renewed = fromBinary(
      FlightEndpointSchema,
      await act(
        "RenewFlightEndpoint",
        toBinary(
          RenewFlightEndpointRequestSchema,
          create(RenewFlightEndpointRequestSchema, { endpoint } as never),
        ),
      ),
    );
    assert.equal((await read({ ...info, endpoint: [renewed] })).length, 5);
    const cancel = toBinary(CancelFlightInfoRequestSchema, create(CancelFlightInfoRequestSchema, { info }));
    const { status: idle } = fromBinary(CancelFlightInfoResultSchema, await act("CancelFlightInfo", cancel));
    assert.equal(idle, CancelStatus.NOT_CANCELLABLE);
    await act("CloseSession", new Uint8Array());
    const unknown = await failureOf(client.call("doAction", { type: "Drop", body: new Uint8Array() }));
    assert.equal(unknown.code, status.UNIMPLEMENTED);
    const exchange = await failureOf(
      client.call("doExchange", ...toFlightData(personStream(people(1)), pathTo("people"))),
    );
    assert.equal(exchange.code, status.UNIMPLEMENTED);
  });

  test("a handshake returns the password as the token of later calls", async () => {
    const basic = `Basic ${Buffer.from("anyone:secret-token").toString("base64")}`;
    const own = connectFlight(server.port, { authorization: basic });
    await own.call("handshake");
    assert.deepEqual(own.metadata?.get("authorization"), ["Bearer secret-token"]);
    own.close();
    const payload = toBinary(
      BasicAuthSchema,
      create(BasicAuthSchema, { username: "a", password: "secret-token" }),
    );
    const [response] = await client.call<Message & { payload: Uint8Array }>("handshake", { payload });
    assert.equal(Buffer.from(response?.payload as Uint8Array).toString(), "secret-token");
  });
});
