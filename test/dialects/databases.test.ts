import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, it } from "vitest";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import type { Gateway } from "../../src/gateway/compose.ts";
import { DescribeNamespaceResponseSchema } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { CountTableRowsResponseSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import type { Access } from "../../src/namespace/authorizer.ts";
import type { Backend } from "../../src/namespace/lance-namespace.ts";
import { people, personStream } from "../support/arrow.ts";
import type { LanceClient } from "../support/client.ts";
import { sendHttp } from "../support/http.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { serveDatabases } from "../support/serve-databases.ts";
import { type DirectoryServer, fakeBackend, startDirectoryServer, startServer } from "../support/server.ts";
import { headersOf, type RemoteCalls, remoteCalls } from "./remote-calls.ts";

const key = drawKey();
const record = { hash: "", name: "etl", role: "owner", created: "2026-01-01T00:00:00.000Z" } as const;
const ring = { find: () => ({ ...record, id: key.id }), close() {} };

/** Proves that every caller is an owner. */
const proof = () => createAuthenticator([proveByKeys(ring)], { failed: () => 0 });

const log = pino({ level: "silent" });
const UPSTREAMS: Readonly<Record<string, (port: number) => Promise<Backend>>> = {
  REST: (port) => createRestBackend({ uri: `http://127.0.0.1:${port}`, log }),
  gRPC: (port) => createGrpcBackend({ addresses: [`127.0.0.1:${port}`], log }),
};

describe("databases of the configuration", () => {
  const decided: string[] = [];
  let gateway: Gateway;
  let catalog: RemoteCalls;
  beforeAll(async () => {
    const limits = { maxUploadBytes: 2 ** 20 };
    const named = ["sales", "events"].map((name) => {
      const countTableRows = async () => create(CountTableRowsResponseSchema, { count: BigInt(name.length) });
      const describeNamespace = async () => create(DescribeNamespaceResponseSchema);
      return [name, { backend: fakeBackend({ countTableRows, describeNamespace }), limits }] as const;
    });
    const authorizer = {
      allows(_: unknown, { object, operation }: Access) {
        decided.push(`${operation} ${object.kind} ${[object.database, ...object.id].join("$")}`);
        return true;
      },
      close() {},
    };
    const routing = {
      routes: [{ by: "header" }, { by: "namespace" }],
      pathPrefix: undefined,
      fallback: undefined,
    } as const;
    const options = { ...limits, host: "127.0.0.1", port: 0, maxMessageBytes: 2 ** 20, drainSeconds: 0 };
    gateway = await serveDatabases(new Map(named), routing, options, {
      log,
      authenticator: proof(),
      authorizer,
    });
    catalog = remoteCalls(gateway.address.port, { ...headersOf(undefined), "x-api-key": key.text });
  });
  afterAll(() => gateway.close());

  it("are listed and opened, by a header and by the host of the region local", async () => {
    assert.deepEqual((await catalog.get("namespace/$/list"))["namespaces"], ["events", "sales"]);
    await catalog.post("namespace/sales/describe", {});
    await catalog.refused("NamespaceNotFound", "namespace/nope/describe", {});
    const names = [
      ["x-lancedb-database", "sales"],
      ["host", "sales.local.api.lancedb.com"],
    ] as const;
    for (const [header, value] of names) {
      const own = { ...headersOf(undefined), "x-api-key": key.text, [header]: value };
      assert.equal(await remoteCalls(gateway.address.port, own).post("table/t/count_rows/", {}), 5);
    }
  });

  it("exist already where they may, and are neither created nor dropped", async () => {
    decided.length = 0;
    await catalog.post("namespace/sales/create", { mode: "ExistOk" });
    assert.equal(decided[0], "CreateNamespace Database sales");
    const path = "namespace/sales/create";
    assert.match(
      await catalog.refused("NamespaceAlreadyExists", path, { mode: "Create" }),
      /database "sales"/,
    );
    await catalog.refused("Unsupported", path, { mode: "Overwrite" });
    assert.match(await catalog.refused("Unsupported", "namespace/new/create", { mode: "ExistOk" }), /"new"/);
    const restricted = { mode: "Fail", behavior: "Restrict" };
    assert.match(
      await catalog.refused("Unsupported", "namespace/sales/drop", restricted),
      /configuration.*"sales"/,
    );
    assert.match(
      await catalog.refused("NamespaceNotFound", "namespace/new/drop", restricted),
      /database "new"/,
    );
    await catalog.post("namespace/new/drop", { ...restricted, mode: "Skip" });
  });
});

describe("databases of an upstream", () => {
  let server: DirectoryServer;
  beforeAll(async () => {
    server = await startDirectoryServer();
    const catalog = remoteCalls(server.port, headersOf(undefined));
    await catalog.post("namespace/a/create", { mode: "Create" });
    await remoteCalls(server.port, headersOf("a")).upload("table/t/create/", personStream(people(1)));
    await remoteCalls(server.port).upload("table/t/create/", personStream(people(9)));
  });
  afterAll(() => server.close());

  for (const [protocol, open] of Object.entries(UPSTREAMS))
    it(`over ${protocol} are entered once, whether the upstream gets the name or the gateway asks who calls`, async (t) => {
      for (const context of [{}, { authenticator: proof() }]) {
        const gateway = await startServer(await open(server.port), {}, { ...context, log });
        t.onTestFinished(gateway.close);
        const connect = (headers: object) =>
          remoteCalls(gateway.port, { ...headersOf(undefined), "x-api-key": key.text, ...headers });
        const count = (headers: object) => connect(headers).post("table/t/count_rows/", {});
        assert.equal(await count({ "x-lancedb-database": "a" }), 1);
        assert.equal(await count({ host: "a.local.api.lancedb.com" }), 1);
        assert.equal(await count({ "x-lancedb-database": "other" }), 9);
        const catalog = connect({});
        await catalog.post("namespace/a/create", { mode: "ExistOk" });
        await catalog.refused("NamespaceNotFound", "namespace/other/describe", {});
        assert.deepEqual((await connect({ "x-lancedb-database": "a" }).get("table/"))["tables"], ["t"]);
      }
    });
});

describe("databases of a catalog connection", () => {
  /** Objects about which something was decided, and lines of the audit log, since the last look. */
  const decided: string[] = [];
  const audited: string[] = [];
  let server: DirectoryServer;
  let [catalog, a, b, plain] = [] as unknown as RemoteCalls[] as [
    RemoteCalls,
    RemoteCalls,
    RemoteCalls,
    RemoteCalls,
  ];
  const connect = (database?: string) =>
    remoteCalls(server.port, { ...headersOf(database), "x-api-key": key.text });

  beforeAll(async () => {
    const authorizer = {
      allows(_: unknown, { object, operation }: Access) {
        decided.push(`${operation} ${object.kind} ${object.id.join("$")}`);
        return true;
      },
      close() {},
    };
    const authenticator = proof();
    const trail = {
      requireWritable() {},
      write: async (line: string) => void audited.push(line),
      close: async () => {},
    };
    server = await startDirectoryServer({}, { authenticator, authorizer, trail });
    [catalog, a, b, plain] = [connect(), connect("a"), connect("b"), connect("shop")];
    await plain.upload("table/t/create/", personStream(people(9)));
    await plain.post("namespace/team/create", {});
    await catalog.post("namespace/a/create", { mode: "Create" });
    await catalog.post("namespace/b/create", { mode: "ExistOk" });
    await a.upload("table/t/create/", personStream(people(1)));
    await b.upload("table/t/create/", personStream(people(2)));
  });
  afterAll(() => server.close());

  const count = (calls: RemoteCalls, table = "t") => calls.post<number>(`table/${table}/count_rows/`, {});
  const counts = () => Promise.all([a, b, plain].map((calls) => count(calls)));

  it("have tables of their own, also when one is overwritten or dropped", async () => {
    assert.deepEqual(await counts(), [1, 2, 9]);
    await b.upload("table/t/create/?mode=overwrite", personStream(people(4)));
    assert.deepEqual(await counts(), [1, 4, 9]);
    await b.post("table/t/drop/");
    await b.refused("TableNotFound", "table/t/count_rows/", {});
    assert.equal(await count(a), 1);
    await b.upload("table/t/create/", personStream(people(2)));
  });

  it("are opened, created again and listed as the client says, and dropped when they are empty", async () => {
    const { namespaces } = await catalog.get("namespace/$/list");
    assert.deepEqual(namespaces, ["a", "b"]);
    const page = await catalog.get("namespace/$/list?limit=1");
    assert.deepEqual(page, { namespaces: ["a"], page_token: "a" });
    await catalog.post("namespace/a/describe", {});
    await catalog.post("namespace/a/create", { mode: "ExistOk" });
    await catalog.refused("NamespaceAlreadyExists", "namespace/a/create", { mode: "Create" });
    await catalog.refused("NamespaceNotFound", "namespace/nope/describe", {});
    await catalog.refused("NamespaceNotEmpty", "namespace/a/drop", { mode: "Fail", behavior: "Restrict" });
    await catalog.post("namespace/c/create", { mode: "Create" });
    await catalog.post("namespace/c/drop", { mode: "Fail", behavior: "Restrict" });
    await catalog.refused("NamespaceNotFound", "namespace/c/drop", { mode: "Fail", behavior: "Restrict" });
    await catalog.post("namespace/c/drop", { mode: "Skip", behavior: "Restrict" });
  });

  it("are not the other namespaces of the root, whose names clients of one database may have", async () => {
    for (const [path, body] of [
      ["create", { mode: "ExistOk" }],
      ["describe", {}],
    ] as const)
      assert.match(
        await catalog.refused("InvalidInput", `namespace/team/${path}`, body),
        /"team" is not a database/,
      );
    const team = connect("team");
    assert.equal(await count(team), 9);
    assert.deepEqual((await plain.get("namespace/$/list"))["namespaces"], ["a", "b", "team"]);
    await plain.post("namespace/team/describe", {});
  });

  it("show names without their own", async () => {
    await a.post("namespace/ns/create", {});
    await a.upload("table/ns$u/create/", personStream(people(3)));
    assert.deepEqual((await a.get("table/"))["tables"], ["t"]);
    assert.deepEqual((await a.get("namespace/$/table/list"))["tables"], ["t"]);
    assert.deepEqual((await a.get("namespace/$/list"))["namespaces"], ["ns"]);
    assert.deepEqual((await a.post("table/ns$u/describe/"))["namespace"], ["ns"]);
    assert.deepEqual((await a.post("table/t/describe/"))["namespace"] ?? [], []);
    assert.deepEqual((await plain.get("namespace/a$ns/table/list"))["tables"], ["u"]);
    await a.post("table/ns$u/rename/", { new_table_name: "v", new_namespace: ["ns"] });
    assert.equal(await count(a, "ns$v"), 3);
    await a.post("namespace/ns/drop", { mode: "Fail", behavior: "Cascade" });
  });

  it("cannot be reached as tables, nor created or dropped by their own clients", async () => {
    await plain.upload("table/b/create/", personStream(people(5))).then(
      () => assert.fail("a table may not have the name of a namespace"),
      () => {},
    );
    await a.refused("InvalidInput", "table/$/count_rows/", {});
    await a.refused("InvalidInput", "table/$/drop/");
    await a.refused("InvalidInput", "namespace/$/drop", { mode: "Fail", behavior: "Cascade" });
    await a.refused("NamespaceAlreadyExists", "namespace/$/create", { mode: "Overwrite" });
    await connect("a$ns").refused("TableNotFound", "table/nope$t/count_rows/", {});
    assert.equal(await count(connect("a$ns")), 9);
    assert.deepEqual(await counts(), [1, 2, 9]);
  });

  it("keep views, clones and jobs to themselves", async () => {
    await a.upload("table/source/create/", personStream(people(6)));
    const { job_id } = await a.post("materialized_view/v/create", {
      query: "SELECT id FROM source WHERE id > 1",
      with_no_data: false,
    });
    await a.ended(job_id);
    assert.equal(await count(a, "v"), 4);
    const { query, source_table, source_namespace } = await a.post("materialized_view/v/describe");
    assert.deepEqual(
      [query, source_table, source_namespace],
      ["SELECT id FROM source WHERE id > 1", "source", []],
    );
    assert.deepEqual((await a.get("namespace/$/materialized_view/list"))["views"], ["v"]);
    await a.post("table/copy/clone", { source_location: "source", is_shallow: true });
    assert.equal(await count(a, "copy"), 6);
    await b.refused("TableNotFound", "table/copy/clone", { source_location: "source", is_shallow: true });
    const jobs = (await a.post<{ jobs: { table: string }[] }>("jobs/list", {})).jobs;
    assert.deepEqual(new Set(jobs.map(({ table }) => table)), new Set(["v"]));
    assert.deepEqual((await b.post("jobs/list", {}))["jobs"], []);
    await b.refused("TransactionNotFound", "jobs/describe", { job_id });
    await b.refused("TransactionNotFound", "jobs/cancel", { job_id });
    for (const table of ["v", "copy", "source"]) await a.post(`table/${table}/drop/`);
  });

  it("are chosen on every protocol, and by the host of the region local", async () => {
    const headers = { "x-lancedb-database": "b", "x-api-key": key.text };
    for (const [protocol, { client, close }] of Object.entries(createProtocolClients(server.port, headers))) {
      assert.equal((await (client as LanceClient).countTableRows({ id: ["t"] })).count, 2n, protocol);
      close();
    }
    const { "x-lancedb-database": _, ...local } = headersOf("a");
    const { bytes } = await sendHttp(server.port, {
      path: "/v1/table/t/count_rows/",
      headers: { ...local, "x-api-key": key.text, host: "b.local.api.lancedb.com" },
      body: "{}",
    });
    assert.equal(bytes.toString(), "2");
    // HTTP/2 has the host in a header of its own.
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    const stream = session.request({
      ...local,
      ":path": "/v1/namespace/%24/list",
      ":authority": "b.local.api.lancedb.com",
      "x-api-key": key.text,
    });
    const answer = JSON.parse(await text(stream));
    session.destroy();
    assert.deepEqual(answer.namespaces, []);
  });

  it("are what policies decide about and what the audit log names", async () => {
    decided.length = 0;
    audited.length = 0;
    await count(a);
    await a.get("table/");
    assert.deepEqual(decided, [
      "CountTableRows Table a$t",
      "ListTables Namespace a",
      "DescribeNamespace Namespace a",
      "DescribeTable Table a$t",
    ]);
    assert.match(audited.join(""), /"a\$t"|\["a","t"\]/);
    assert.match(audited.join(""), /ListAllTables/);
  });
});
