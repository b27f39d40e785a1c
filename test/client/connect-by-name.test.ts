import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import {
  connect,
  isCancelled,
  isInvalidInput,
  isUnavailable,
  isUnsupported,
  ListTablesResponseSchema,
  type NamespaceImplementation,
  registerNamespace,
} from "../../src/client/index.ts";

describe("connect", () => {
  const implementation: NamespaceImplementation = {
    name: "mine",
    headers: { "X-Tenant": "blue" },
    operations: {
      listTables: async (_request, call) =>
        create(ListTablesResponseSchema, { tables: [...call.id, call.headers["x-tenant"] ?? ""] }),
    },
  };

  it("finds implementations of others by name", async () => {
    registerNamespace("mine", () => implementation);
    await using ns = await connect("mine");
    assert.equal(ns.implementation, "mine");
    assert.deepEqual((await ns.listTables({ id: ["a"] })).tables, ["a", "blue"]);
    const own = await ns.listTables({}, { headers: { "x-tenant": "red" } });
    assert.deepEqual(own.tables, ["red"]);
    await assert.rejects(ns.describeTable({ id: ["a"] }), isUnsupported);
    await assert.rejects(ns.queryTable({ id: ["a"] }).toArray(), isUnsupported);
  });

  it("names what is missing, wrong or unknown", async () => {
    const fails = (name: string, properties: Record<string, string>, message: RegExp) =>
      assert.rejects(
        connect(name, properties),
        (error) => isInvalidInput(error) && message.test(error.message),
      );
    await fails("nope", {}, /no namespace implementation "nope"; there are "dir", "rest"/);
    await fails("rest", {}, /"rest" needs the property "uri"/);
    await fails("rest", { uri: "localhost" }, /must be an address/);
    await fails("rest", { uri: "http://localhost", urii: "x" }, /has no property "urii"/);
    await fails(
      "rest",
      { uri: "http://localhost", dialect: "klingon" },
      /must be one of specification, lancedb/,
    );
    await fails("rest", { uri: "https://localhost", "tls.cert_file": "x" }, /go together/);
    await fails(
      "grpc",
      { address: "http://localhost:1" },
      /must be a host and a port such as 127.0.0.1:2333/,
    );
    await fails("grpc", { address: "localhost:1", tls: "maybe" }, /must be true or false, not "maybe"/);
    await fails("dir", { root: "/dev/null/x" }, /\/dev\/null\/x/);
  });

  it("reports a server that is away", async () => {
    for (const [name, properties] of [
      ["rest", { uri: "http://127.0.0.1:1" }],
      ["grpc", { address: "127.0.0.1:1" }],
      ["connect", { uri: "http://127.0.0.1:1" }],
    ] as const) {
      await using ns = await connect(name, properties);
      await assert.rejects(ns.listTables(), isUnavailable, name);
      await assert.rejects(ns.listTables(), { message: `${Object.values(properties)[0]} cannot be reached` });
    }
  });

  it("says that a connection is closed, which no repetition mends", async () => {
    for (const [name, properties] of [
      ["rest", { uri: "http://127.0.0.1:1" }],
      ["grpc", { address: "127.0.0.1:1" }],
      ["connect", { uri: "http://127.0.0.1:1" }],
    ] as const) {
      const ns = await connect(name, properties);
      await ns.close();
      const isClosed = (error: unknown) => isCancelled(error) && error.message === "the connection is closed";
      await assert.rejects(ns.listTables(), isClosed, name);
      await assert.rejects(ns.insertIntoTable({ id: ["t"] }, new Uint8Array(8)), isClosed, name);
      await assert.rejects(ns.queryTable({ id: ["t"] }).toTable(), isClosed, name);
    }
  });
});
