import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { createTrail } from "../../src/observability/log/lines/trail.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type LanceClient } from "../support/client.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const TABLE = ["team", "people"];
const [writer, unknown] = [drawKey(), drawKey()];
const record = { hash: "", name: "etl", role: "writer", created: "2026-01-01T00:00:00.000Z" } as const;
const ring = {
  find: (text: string) => (text === writer.text ? { ...record, id: writer.id } : ("unknown" as const)),
  close() {},
};

test("calls that depend on the audit log change nothing while it cannot be written", async ({
  onTestFinished,
}) => {
  const state = { broken: false };
  const writer = {
    async append() {
      if (state.broken) throw new Error("no space");
    },
    async close() {},
  };
  const log = pino({ level: "silent" });
  const trail = createTrail({ name: "audit log", writer, required: true, log, onLost() {} });
  const server = await startDirectoryServer({}, { trail });
  const clients = createProtocolClients(server.port);
  onTestFinished(async () => {
    for (const { close } of Object.values(clients)) close();
    await server.close();
  });
  const client = clients["REST"]?.client as LanceClient;
  const unavailable = (error: unknown) => error instanceof CallError && error.failure.httpStatus === 503;
  const create = (name: string) => client.createNamespace({ id: [name] });

  state.broken = true;
  await assert.rejects(create("running"), unavailable);
  await assert.rejects(create("later"), unavailable);
  state.broken = false;
  // The line of this refusal shows that lines can be written again.
  await assert.rejects(create("last"), unavailable);
  await create("first");
  const { namespaces } = await client.listNamespaces({ id: [] });
  assert.deepEqual([...namespaces].sort(), ["first", "running"]);
});

describe("the audit log of a gateway", () => {
  const lines: string[] = [];
  const trail = {
    requireWritable() {},
    write: async (line: string) => void lines.push(line),
    close: async () => {},
  };
  let server: DirectoryServer;
  beforeAll(async () => {
    const authenticator = createAuthenticator([proveByKeys(ring)], { failed: () => 0 });
    server = await startDirectoryServer({}, { authenticator, trail });
    const { gRPC } = createProtocolClients(server.port, { "x-api-key": writer.text });
    await gRPC?.client.createTable({ id: ["people"] }, personStream(people(5)));
    gRPC?.close();
  });
  afterAll(() => server.close());

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: has calls that were answered and calls that were refused, and no key`, async () => {
      const before = lines.length;
      const ask = async (key: string, call: (client: LanceClient) => Promise<unknown>) => {
        const clients = createProtocolClients(server.port, { "x-api-key": key });
        await call(clients[protocol]?.client as LanceClient).catch(() => {});
        for (const { close } of Object.values(clients)) close();
      };
      await ask(writer.text, (client) => client.countTableRows({ id: ["people"] }));
      await ask(writer.text, (client) => client.queryTable({ id: ["people"], k: 2n }));
      await ask(writer.text, (client) => client.dropTable({ id: TABLE }));
      await ask(writer.text, (client) => client.describeTable({ id: ["x".repeat(300)] }));
      await ask(unknown.text, (client) => client.describeTable({ id: TABLE }));
      const entries = lines.slice(before).map((line) => JSON.parse(line));
      // The gateway does not read the message of a caller whom it refuses; over REST, the path names the object.
      const refused = protocol === "REST" ? "team$people" : undefined;
      assert.deepEqual(
        entries.map((each) => [
          each.operation,
          each.stage,
          each.object,
          each.credential,
          each.allowed,
          each.outcome,
        ]),
        [
          ["CountTableRows", "end", "people", writer.id, true, "OK"],
          ["QueryTable", "begin", "people", writer.id, true, "OK"],
          ["QueryTable", "end", "people", writer.id, true, "OK"],
          ["DropTable", "end", "team$people", writer.id, false, "PermissionDenied"],
          ["DescribeTable", "end", "$", undefined, false, "InvalidInput"],
          ["DescribeTable", "end", refused, undefined, false, "Unauthenticated"],
        ],
      );
      assert.ok(entries.every(({ peer }) => /127\.0\.0\.1$/.test(peer)));
      for (const key of [writer, unknown]) assert.ok(!lines.join().includes(key.text.slice(-20)));
    });
  }
});
