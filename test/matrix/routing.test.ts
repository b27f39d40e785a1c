import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { Gateway } from "../../src/gateway/compose.ts";
import { DescribeTableResponseSchema } from "../../src/gen/lance/namespace/v1/table_pb.ts";
import type { ErrorName } from "../../src/namespace/errors.ts";
import { errorEntry } from "../../src/namespace/errors.ts";
import type { Route } from "../../src/pipeline/call/route.ts";
import { type Address, type Outcome, ROUTED_CALLERS } from "../support/routed-callers.ts";
import { serveDatabases } from "../support/serve-databases.ts";
import { fakeBackend } from "../support/server.ts";

const LIMITS = { maxUploadBytes: 2 ** 20 };
const OPTIONS = { ...LIMITS, host: "127.0.0.1", port: 0, maxMessageBytes: 2 ** 20, drainSeconds: 0 };

/** Returns a database whose tables all have its name. */
const database = (name: string) => ({
  backend: fakeBackend({
    describeTable: async (_, { id }) =>
      create(DescribeTableResponseSchema, { table: name, namespace: id.slice(0, -1) }),
  }),
  limits: LIMITS,
});

function open(routes: readonly Route[], fallback?: string): Promise<Gateway> {
  const databases = new Map(["red", "blue", "team/green"].map((name) => [name, database(name)]));
  const routing = {
    routes,
    pathPrefix: routes.some(({ by }) => by === "path") ? "/db" : undefined,
    fallback,
  };
  return serveDatabases(databases, routing, OPTIONS, { log: pino({ level: "silent" }) });
}

const hosts = { localhost: "red", "*.0.0.1": "blue" };

describe("the choice of the database on every wire", () => {
  const gateways: Record<string, Gateway> = {};
  beforeAll(async () => {
    gateways["header and path"] = await open([{ by: "path" }, { by: "header" }]);
    gateways["host"] = await open([{ by: "host", hosts }]);
    gateways["namespace"] = await open([{ by: "namespace" }]);
    gateways["default"] = await open([{ by: "header" }], "blue");
  });
  afterAll(() => Promise.all(Object.values(gateways).map((gateway) => gateway.close())));

  /** The expected outcome for an address: the table of a database in a namespace, or an error. */
  type Expected = { table: string; namespace?: string[] } | { fails: ErrorName };

  const cases: readonly (readonly [gateway: string, address: Address, expected: Expected])[] = [
    ["header and path", { headers: { "x-service-database": "red" } }, { table: "red" }],
    ["header and path", { headers: { "x-lancedb-database": "blue" } }, { table: "blue" }],
    [
      "header and path",
      { headers: { "x-service-database": "team", "x-service-database-prefix": "green" } },
      { table: "team/green" },
    ],
    [
      "header and path",
      { headers: { "x-lancedb-database": "team", "x-lancedb-database-prefix": "green" } },
      { table: "team/green" },
    ],
    ["header and path", { headers: { "x-service-database-prefix": "green" } }, { fails: "InvalidInput" }],
    ["header and path", { headers: { "x-service-database": "black" } }, { fails: "NamespaceNotFound" }],
    ["header and path", { prefix: "/db/red", id: ["ns", "t"] }, { table: "red", namespace: ["ns"] }],
    ["header and path", { prefix: "/db/team%2Fgreen" }, { table: "team/green" }],
    ["header and path", { prefix: "/db/red", headers: { "x-service-database": "blue" } }, { table: "red" }],
    ["header and path", { prefix: "/db/black" }, { fails: "NamespaceNotFound" }],
    ["header and path", { prefix: "/db/%zz" }, { fails: "NamespaceNotFound" }],
    ["header and path", { headers: { "lance-gateway-path-database": "red" } }, { fails: "InvalidInput" }],
    ["header and path", { context: { "header.x-service-database": "red" } }, { table: "red" }],
    [
      "header and path",
      { context: { "header.lance-gateway-path-database": "red" } },
      { fails: "InvalidInput" },
    ],
    [
      "header and path",
      { prefix: "/db/blue", context: { "header.x-service-database": "red" } },
      { table: "blue" },
    ],
    ["host", { host: "127.0.0.1", context: { "header.host": "localhost" } }, { table: "blue" }],
    ["header and path", {}, { fails: "InvalidInput" }],
    ["host", { host: "localhost" }, { table: "red" }],
    ["host", { host: "127.0.0.1" }, { table: "blue" }],
    ["namespace", { id: ["red", "t"] }, { table: "red", namespace: ["red"] }],
    ["namespace", { id: ["blue", "ns", "t"] }, { table: "blue", namespace: ["blue", "ns"] }],
    ["namespace", { id: ["black", "t"] }, { fails: "NamespaceNotFound" }],
    ["default", {}, { table: "blue" }],
    ["default", { headers: { "x-service-database": "red" } }, { table: "red" }],
    ["default", { headers: { "x-service-database": "black" } }, { fails: "NamespaceNotFound" }],
  ];

  for (const [gateway, address, expected] of cases) {
    test(`by ${gateway}: ${JSON.stringify(address)}`, async () => {
      for (const [protocol, call] of Object.entries(ROUTED_CALLERS)) {
        const { port } = (gateways[gateway] as Gateway).address;
        const outcome: Outcome = await call(port, address);
        if ("fails" in expected) {
          assert.ok("code" in outcome, protocol);
          assert.equal(outcome.code, errorEntry(expected.fails).code, protocol);
          assert.doesNotMatch(outcome.text, /red|blue|green/, protocol);
        } else {
          assert.deepEqual(outcome, { namespace: [], ...expected }, protocol);
        }
      }
    });
  }
});
