import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { type ServiceError, status } from "@grpc/grpc-js";
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
  FlightService,
  RenewFlightEndpointRequestSchema,
} from "../../src/gen/arrow/flight/protocol/Flight_pb.ts";
import type { Call } from "../../src/namespace/call/call.ts";
import type { Role } from "../../src/namespace/call/principal.ts";
import { people, personStream, rowsOf } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { connectFlight, type FlightClient, fromFlightData, pathTo, toFlightData } from "../support/flight.ts";
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

async function codeOf(call: Promise<unknown>): Promise<number> {
  return call.then(
    () => status.OK,
    (error: ServiceError) => error.code,
  );
}

describe("callers of Arrow Flight", () => {
  let server: DirectoryServer;
  let remove: () => Promise<void>;
  const calls: { operation: string; protocol: string; caller: string | undefined }[] = [];
  const clients = new Map<string, FlightClient>();
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
        return {
          ...facts,
          id: keys[name].id,
          name,
          ...CALLERS[name],
          role: CALLERS[name].role satisfies Role,
        };
      },
      close() {},
    };
    const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });
    const authorizer = await openPolicyFolder({ directory: policyDir, log: pino({ level: "silent" }) });
    const note = ({ method, protocol, principal }: Call) =>
      void calls.push({ operation: method.name, protocol, caller: principal?.name });
    const interceptors = [
      (call: Call, request: never, next: (call: Call, request: never) => Promise<never>) => {
        note(call);
        return next(call, request);
      },
    ];
    server = await startDirectoryServer(
      {},
      { authenticator, authorizer, plugins: [{ interceptors }] as never },
    );
    for (const name of names)
      clients.set(name, connectFlight(server.port, { authorization: `Bearer ${keys[name].text}` }));
    clients.set("nobody", connectFlight(server.port));
    clients.set("stranger", connectFlight(server.port, { "x-api-key": drawKey().text }));
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

  const infoOf = async (caller: string, ...path: string[]) =>
    (await as(caller).call<FlightInfo>("getFlightInfo", pathTo(...path)))[0] as FlightInfo;
  const read = (caller: string, { endpoint }: FlightInfo) =>
    as(caller).call<FlightData>("doGet", endpoint[0]?.ticket as object);
  const put = (caller: string, write: string, ...path: string[]) =>
    as(caller).call("doPut", ...toFlightData(personStream(people(1)), pathTo(...path), { write }));
  const act = (caller: string, type: string, info: FlightInfo) => {
    const [endpoint] = info.endpoint;
    const body =
      type === "CancelFlightInfo"
        ? toBinary(CancelFlightInfoRequestSchema, create(CancelFlightInfoRequestSchema, { info }))
        : toBinary(
            RenewFlightEndpointRequestSchema,
            create(RenewFlightEndpointRequestSchema, { endpoint } as never),
          );
    return as(caller).call("doAction", { type, body });
  };
  const listed = async (caller: string, criteria = "") =>
    (await as(caller).call<FlightInfo>("listFlights", { expression: Buffer.from(criteria) })).map(
      ({ flightDescriptor }) => flightDescriptor?.path.join("/"),
    );

  test("refuses a caller without a key, or with a wrong one, on every method", async () => {
    for (const caller of ["nobody", "stranger"])
      for (const { localName } of FlightService.methods) {
        if (caller === "stranger" || localName !== "handshake")
          assert.equal(
            await codeOf(as(caller).call(localName as "doGet", {})),
            status.UNAUTHENTICATED,
            `${caller} ${localName}`,
          );
      }
    assert.equal(await codeOf(as("nobody").call("handshake", {})), status.UNAUTHENTICATED);
  });

  test("lets a reader read and list, and write nothing", async () => {
    assert.equal(rowsOf(fromFlightData(await read("reader", await infoOf("reader", "top")))).length, 3);
    for (const write of ["create", "exist_ok", "replace", "append", "overwrite"])
      assert.equal(await codeOf(put("reader", write, "top")), status.PERMISSION_DENIED, write);
    const merge = toFlightData(personStream(people(1)), pathTo("top"), { write: "merge", on: ["id"] });
    assert.equal(await codeOf(as("reader").call("doPut", ...merge)), status.PERMISSION_DENIED);
    assert.equal((await infoOf("owner", "top")).totalRecords, 3n);
  });

  test("hides a table from a caller to whom a policy denies it, on every method", async () => {
    const salaries = await infoOf("owner", "team", "salaries");
    assert.deepEqual((await listed("reader")).sort(), ["team/people", "top"]);
    assert.ok((await listed("owner")).includes("team/salaries"));
    const denied = [status.PERMISSION_DENIED, status.NOT_FOUND];
    for (const name of ["getFlightInfo", "pollFlightInfo", "getSchema"] as const)
      assert.ok(denied.includes(await codeOf(as("reader").call(name, pathTo("team", "salaries")))), name);
    assert.ok(denied.includes(await codeOf(put("reader", "append", "team", "salaries"))));
    assert.equal(await codeOf(read("reader", salaries)), status.PERMISSION_DENIED);
  });

  test("keeps a restricted key to its scope", async () => {
    assert.deepEqual(await listed("scoped", '{"namespace": ["team"]}'), ["team/people", "team/salaries"]);
    assert.equal(await codeOf(listed("scoped")), status.PERMISSION_DENIED);
    for (const name of ["getFlightInfo", "pollFlightInfo", "getSchema"] as const)
      assert.equal(await codeOf(as("scoped").call(name, pathTo("top"))), status.PERMISSION_DENIED, name);
    assert.equal(await codeOf(put("scoped", "append", "top")), status.PERMISSION_DENIED);
    assert.equal(await codeOf(infoOf("scoped", "team", "people")), status.OK);
  });

  test("accepts a ticket of its owner alone, also in actions", async () => {
    const info = await infoOf("owner", "top");
    for (const caller of ["reader", "scoped"]) {
      assert.equal(await codeOf(read(caller, info)), status.PERMISSION_DENIED);
      for (const type of ["CancelFlightInfo", "RenewFlightEndpoint"])
        assert.equal(await codeOf(act(caller, type, info)), status.PERMISSION_DENIED, `${caller} ${type}`);
    }
    assert.equal(await codeOf(act("owner", "RenewFlightEndpoint", info)), status.OK);
    assert.equal(await codeOf(read("owner", info)), status.OK);
  });

  test("a handshake proves a key, and each call is recorded as one of Flight", async () => {
    const basic = (password: string) => `Basic ${Buffer.from(`me:${password}`).toString("base64")}`;
    const own = connectFlight(server.port, { authorization: basic(keys.reader.text) });
    await own.call("handshake");
    assert.deepEqual(own.metadata?.get("authorization"), [`Bearer ${keys.reader.text}`]);
    calls.length = 0;
    await own.call("getSchema", pathTo("top"));
    assert.deepEqual(calls, [{ operation: "QueryTable", protocol: "flight", caller: "reader" }]);
    own.close();
    const wrong = connectFlight(server.port, { authorization: basic(drawKey().text) });
    assert.equal(await codeOf(wrong.call("handshake")), status.UNAUTHENTICATED);
    wrong.close();
  });
});
