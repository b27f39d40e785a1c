import assert from "node:assert/strict";
import { readdir, realpath } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { proveByTokens } from "../../src/auth/tokens/authenticate-by-token.ts";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { connect, isInvalidInput, isNotFound, LanceError, type Namespace } from "../../src/client/index.ts";
import type { ErrorName } from "../../src/namespace/errors.ts";
import { claims, shownKeys, sign, signingKey, trustedIssuer, verifierWith } from "../fixtures/auth/tokens.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { jsonOf, type RawAnswer, sendHttp } from "../support/http.ts";
import { serveDatabases } from "../support/serve-databases.ts";
import {
  type DirectoryServer,
  fakeBackend,
  startDirectoryServer,
  startServer,
  type TestServer,
} from "../support/server.ts";

/** The implementations of the specification, by name. */
type Implementation = "dir" | "rest";
const IMPLEMENTATIONS: readonly Implementation[] = ["dir", "rest"];

const JSON_TYPE = { "content-type": "application/json" };
const log = pino({ level: "silent" });

/** Errors of the specification: status, type and title. */
const ERRORS: readonly (readonly [name: ErrorName, status: number, type: string, title: string])[] = [
  ["InvalidInput", 400, "/errors/bad-request", "Malformed request"],
  [
    "Unauthenticated",
    401,
    "/errors/unauthorized-request",
    "No valid authentication credentials for the operation",
  ],
  ["PermissionDenied", 403, "/errors/forbidden-request", "Not authorized to make this request"],
  ["TableNotFound", 404, "/errors/not-found-error", "Not found Error"],
  ["ConcurrentModification", 409, "/errors/conflict", "The namespace has been concurrently modified"],
  ["ServiceUnavailable", 503, "/errors/service-unavailable", "Slow down"],
  ["Internal", 500, "/errors/server-error", "Internal Server Error"],
];

let server: DirectoryServer;
const namespaces: Partial<Record<Implementation, Namespace>> = {};
const roots: Partial<Record<Implementation, string>> = {};
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startDirectoryServer();
  const { path, remove } = await temporaryDirectory();
  Object.assign(roots, { dir: join(path, "catalog"), rest: server.root });
  namespaces.dir = await connect("dir", { root: join(path, "catalog") });
  namespaces.rest = await connect("rest", { uri: `http://127.0.0.1:${server.port}` });
  closing.push(remove, server.close);
});
afterAll(async () => {
  for (const namespace of Object.values(namespaces)) await namespace.close();
  for (const close of closing) await close();
});

const post = (path: string, body: unknown = {}, headers = {}, port = server.port): Promise<RawAnswer> =>
  sendHttp(port, { path, body: JSON.stringify(body), headers: { ...JSON_TYPE, ...headers } });
const get = (path: string): Promise<RawAnswer> => sendHttp(server.port, { method: "GET", path });

/** Sends a request that succeeds, and returns the JSON of its answer. */
async function done(path: string, body?: unknown, headers?: Readonly<Record<string, string>>) {
  const answer = await post(path, body, headers);
  assert.equal(answer.status, 200, `${path}: ${answer.bytes}`);
  assert.match(String(answer.headers["content-type"]), /^application\/json/);
  return jsonOf(answer);
}

let names = 0;
const fresh = (name: string) => `${name}${++names}`;

/** Runs a test by each implementation of the client. */
function byClient(title: string, run: (ns: Namespace, root: string) => Promise<void>): void {
  for (const name of IMPLEMENTATIONS)
    test(`the client, ${name}: ${title}`, () => run(namespaces[name] as Namespace, roots[name] as string));
}

describe("what the service does", () => {
  test("REST: a namespace contains tables and other namespaces, recursively", async () => {
    await done("/v1/namespace/outer/create");
    await done("/v1/namespace/outer$inner/create");
    await done("/v1/table/outer$t/declare");
    await done("/v1/table/outer$inner$t/declare");
    assert.deepEqual(jsonOf(await get("/v1/namespace/outer/list"))["namespaces"], ["inner"]);
    assert.deepEqual(jsonOf(await get("/v1/namespace/outer$inner/table/list"))["tables"], ["t"]);
  });

  byClient("a namespace contains tables and other namespaces, recursively", async (ns) => {
    const outer = fresh("outer");
    for (const id of [[outer], [outer, "inner"]]) {
      await ns.createNamespace({ id });
      await ns.declareTable({ id: [...id, "t"] });
    }
    assert.deepEqual((await ns.listNamespaces({ id: [outer] })).namespaces, ["inner"]);
    assert.deepEqual((await ns.listTables({ id: [outer, "inner"] })).tables, ["t"]);
  });

  byClient("tables are in data below the root, which is created on connect", async (ns, root) => {
    const found = (await readdir(root)).filter((name) => !name.startsWith("."));
    assert.deepEqual(found, ["data"]);
    const { location = "" } = await ns.declareTable({ id: [fresh("t")] });
    assert.ok(location.startsWith(join(await realpath(root), "data", "/")), location);
  });

  byClient("the root namespace is implicit", async (ns) => {
    assert.deepEqual((await ns.describeNamespace({ id: [] })).properties, {});
    await ns.namespaceExists({ id: [] });
  });

  byClient("tables are created, opened, renamed and dropped with a namespace path", async (ns) => {
    const namespacePath = [fresh("n")];
    await ns.createNamespace({ id: namespacePath });
    await ns.createTable("t", [{ id: 1 }], { namespacePath });
    assert.equal(await (await ns.openTable("t", { namespacePath })).countRows(), 1);
    await ns.renameTable("t", "u", { namespacePath });
    assert.deepEqual((await ns.listTables({ id: namespacePath })).tables, ["u"]);
    await ns.dropTable("u", { namespacePath });
    assert.deepEqual((await ns.listTables({ id: namespacePath })).tables, []);
  });

  test("the client: properties that begin with headers are sent as headers, without the prefix", async (t) => {
    const seen: NodeJS.Dict<string | string[]>[] = [];
    const listening = createServer((request, response) => {
      seen.push(request.headers);
      response.writeHead(200, JSON_TYPE).end('{"namespaces":[]}');
    }).listen(0, "127.0.0.1");
    t.onTestFinished(() => void listening.close());
    await new Promise((resolve) => listening.once("listening", resolve));
    const uri = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
    const sent = { "headers.Authorization": "Bearer t", "headers.X-API-Key": "k" };
    await using ns = await connect("rest", { uri, ...sent });
    await ns.listNamespaces();
    assert.deepEqual([seen[0]?.["authorization"], seen[0]?.["x-api-key"]], ["Bearer t", "k"]);
  });

  test("the client: all paths follow the base address, and requests are JSON", async (t) => {
    const seen: (string | undefined)[][] = [];
    const listening = createServer(({ method, url, headers }, response) => {
      seen.push([method, decodeURIComponent(url?.split("?")[0] ?? ""), headers["content-type"]]);
      response.writeHead(200, JSON_TYPE).end('{"namespaces":[],"location":"/x"}');
    }).listen(0, "127.0.0.1");
    t.onTestFinished(() => void listening.close());
    await new Promise((resolve) => listening.once("listening", resolve));
    const uri = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/base/path`;
    await using ns = await connect("rest", { uri });
    await ns.listNamespaces();
    await ns.createNamespace({ id: ["a", "b"] });
    await ns.declareTable({ id: ["a", "t"] });
    await ns.createTableTag({ id: ["a", "t"], tag: "g", version: 1 });
    assert.deepEqual(seen, [
      ["GET", "/base/path/v1/namespace/$/list", undefined],
      ["POST", "/base/path/v1/namespace/a$b/create", "application/json"],
      ["POST", "/base/path/v1/table/a$t/declare", "application/json"],
      ["POST", "/base/path/v1/table/a$t/tags/create", "application/json"],
    ]);
  });

  test("REST: paths have the prefix /v1/ and no other", async () => {
    for (const path of ["/namespace/$/list", "/v2/namespace/$/list", "/V1/namespace/$/list"])
      assert.equal((await get(path)).status, 404, path);
    assert.equal((await get("/v1/namespace/$/list")).status, 200);
  });
});

describe("paths and names", () => {
  const BAD = ["a b", "a:b", "ä", "日本", "a/b", "a+b", "a%b", "a\u0000b", "a'b", "(a)"];
  const GOOD = ["a-b", "a_b", "a.b", "A9", "-", "_", "9"];

  test("REST: a component has letters, digits, underscores, hyphens and periods only, and is not empty", async () => {
    const parent = fresh("n");
    await done(`/v1/namespace/${parent}/create`);
    for (const name of GOOD) {
      const id = `${parent}$${name}`;
      await done(`/v1/namespace/${id}/create`);
      await done(`/v1/table/${id}$${name}/declare`);
    }
    for (const name of ["", ...BAD]) {
      const id = encodeURIComponent(`${parent}$${name}`);
      for (const path of [`/v1/namespace/${id}/create`, `/v1/table/${id}/declare`]) {
        const answer = await post(path);
        assert.equal(answer.status, 400, path);
        assert.equal(jsonOf(answer)["type"], "/errors/bad-request");
      }
    }
    assert.deepEqual(jsonOf(await get(`/v1/namespace/${parent}/list`))["namespaces"], GOOD.toSorted());
  });

  byClient(
    "a component has letters, digits, underscores, hyphens and periods only, and is not empty",
    async (ns) => {
      const parent = fresh("n");
      await ns.createNamespace({ id: [parent] });
      for (const name of GOOD) await ns.createNamespace({ id: [parent, name] });
      await ns.createTable("t", [{ id: 1 }], { namespacePath: [parent] });
      for (const name of ["", ...BAD]) {
        const id = [parent, name];
        for (const call of [
          () => ns.createNamespace({ id }),
          () => ns.declareTable({ id }),
          () => ns.createTable(name, [{ id: 1 }], { namespacePath: [parent] }),
          () => ns.renameTable("t", name, { namespacePath: [parent] }),
        ])
          await assert.rejects(call, isInvalidInput, name);
      }
      assert.deepEqual((await ns.listTables({ id: [parent] })).tables, ["t"]);
      assert.deepEqual((await ns.listNamespaces({ id: [parent] })).namespaces.toSorted(), GOOD.toSorted());
    },
  );

  test("REST: an identifier is joined by $, or by the delimiter of the query, which alone is the root", async () => {
    const outer = fresh("n");
    await done(`/v1/namespace/${outer}/create`);
    await done(`/v1/namespace/${outer}$x.y/create`);
    await done(`/v1/namespace/${outer}::x.y/describe?delimiter=::`);
    for (const root of ["/v1/namespace/$/list", "/v1/namespace/::/list?delimiter=::"])
      assert.ok((jsonOf(await get(root))["namespaces"] as string[]).includes(outer), root);
  });

  test("REST: a path of an identifier is an ordered list, which the body may repeat", async () => {
    const [a, b] = [fresh("n"), fresh("n")];
    for (const id of [[a], [b], [a, b]]) await done(`/v1/namespace/${id.join("$")}/create`, { id });
    assert.equal((await post(`/v1/namespace/${b}$${a}/describe`)).status, 404);
    assert.equal((await post(`/v1/namespace/${a}$${b}/describe`, { id: [b, a] })).status, 400);
    await done("/v1/namespace/$/describe", { id: [] });
  });

  byClient("a path is an ordered list, which a string joins by the delimiter", async (ns) => {
    const [a, b] = [fresh("n"), fresh("n")];
    for (const id of [[a], [b], [a, b]]) await ns.createNamespace({ id });
    await ns.namespaceExists({ identifier: `${a}$${b}` });
    await ns.namespaceExists({ identifier: `${a}::${b}`, delimiter: "::" });
    await assert.rejects(ns.namespaceExists({ id: [b, a] }), isNotFound);
    await assert.rejects(ns.namespaceExists({ identifier: `${b}$${a}` }), isNotFound);
  });

  byClient("the empty path is the root", async (ns) => {
    const id = [fresh("n")];
    await ns.createNamespace({ id });
    assert.ok((await ns.listNamespaces({ id: [] })).namespaces.includes(id[0] as string));
    assert.deepEqual(
      (await ns.listNamespaces({ identifier: "$" })).namespaces,
      (await ns.listNamespaces()).namespaces,
    );
  });

  test("REST: a component of dots alone is refused, because clients of HTTP drop it from paths", async () => {
    const outer = fresh("n");
    await done(`/v1/namespace/${outer}/create`);
    for (const name of [".", "..", "..."])
      for (const path of [name, name.replaceAll(".", "%2e"), `${outer}$${name}`]) {
        const refused = await post(`/v1/namespace/${path}/create`);
        assert.equal(refused.status, 400, path);
        assert.match(String(jsonOf(refused)["error"]), /dots alone/);
      }
    assert.equal(new URL("http://a/v1/namespace/%2e%2e/create").pathname, "/v1/create");
  });

  byClient("a component is a name, not a segment of a path", async (ns) => {
    for (const name of [".", ".."]) await assert.rejects(ns.createNamespace({ id: [name] }), isInvalidInput);
    const name = fresh("a..b.lance");
    await ns.declareTable({ id: [name] });
    assert.equal((await ns.describeTable({ id: [name] })).table, name);
  });
});

describe("tags", () => {
  byClient("a tag points to a version of a table, on the main branch or another", async (ns) => {
    const name = fresh("t");
    await ns.createTable(name, [{ id: 1 }]);
    const id = [name];
    await ns.createTableBranch({ id, name: "b" });
    await ns.createTableTag({ id, tag: "first", version: 1 });
    await ns.createTableTag({ id, tag: "other", version: 1, branch: "b" });
    const { tags } = await ns.listTableTags({ id });
    assert.deepEqual(Object.keys(tags).toSorted(), ["first", "other"]);
    assert.deepEqual(
      [tags["first"]?.version, tags["first"]?.branch, tags["other"]?.branch],
      [1n, undefined, "b"],
    );
  });

  test("REST: create answers with JSON, reads the identifier of the body, and refuses a version below 0", async () => {
    const ns = namespaces.rest as Namespace;
    const name = fresh("t");
    await ns.createTable(name, [{ id: 1 }]);
    const body = { id: [name], tag: "a", version: 1, identity: { api_key: "k" }, context: { note: "n" } };
    const { transaction_id: transaction, context } = await done(`/v1/table/${name}/tags/create`, body);
    assert.ok(transaction === undefined || typeof transaction === "string");
    assert.ok(context === undefined || typeof context === "object");
    const refused = await post(`/v1/table/${name}/tags/create`, { tag: "b", version: -1 });
    assert.equal(refused.status, 400);
    const other = await post(`/v1/table/${name}/tags/create`, { ...body, id: ["another"] });
    assert.equal(other.status, 400);
  });

  test("REST: a tag points to a version of the main branch, or of another one", async () => {
    const name = fresh("t");
    await (namespaces.rest as Namespace).createTable(name, [{ id: 1 }]);
    await done(`/v1/table/${name}/branches/create`, { name: "b" });
    await done(`/v1/table/${name}/tags/create`, { tag: "first", version: 1 });
    await done(`/v1/table/${name}/tags/create`, { tag: "other", version: 1, branch: "b" });
    const version = (tag: string) => done(`/v1/table/${name}/tags/version`, { tag });
    assert.equal((await version("first"))["version"], 1);
    assert.equal((await version("other"))["version"], 1);
    const { tags } = await done(`/v1/table/${name}/tags/list`);
    const { first, other } = tags as Record<string, { branch?: string }>;
    assert.deepEqual([first?.branch, other?.branch], [undefined, "b"]);
  });

  byClient("the version of a tag is at least 0, and one that the table has", async (ns) => {
    const name = fresh("t");
    await ns.createTable(name, [{ id: 1 }]);
    await assert.rejects(ns.createTableTag({ id: [name], tag: "a", version: -1 }), isInvalidInput);
    await assert.rejects(ns.createTableTag({ id: [name], tag: "a", version: 9 }), isNotFound);
    assert.deepEqual((await ns.listTableTags({ id: [name] })).tags, {});
  });
});

describe("declared tables", () => {
  byClient("exist by a marker alone, with properties of their own", async (ns) => {
    const id = [fresh("t")];
    const properties = { owner: "team" };
    const declared = await ns.declareTable({ id, properties });
    assert.deepEqual(declared.properties, properties);
    assert.deepEqual(await readdir(declared.location as string), [".lance-reserved"]);
    await ns.tableExists({ id });
    assert.deepEqual((await ns.describeTable({ id })).properties, properties);
  });

  byClient("are where the caller says, if it says so", async (ns) => {
    const location = fresh("place");
    const declared = await ns.declareTable({ id: [fresh("t")], location });
    assert.equal(basename(declared.location ?? ""), location);
  });

  test("REST: the answer has a location, storage options, properties and a say over versions", async () => {
    for (const vend of [undefined, true, false]) {
      const body = { id: [fresh("t")], vend_credentials: vend, properties: { a: "b" } };
      const answer = await done(`/v1/table/${body.id[0]}/declare`, body);
      assert.equal(typeof answer["location"], "string");
      assert.deepEqual(answer["properties"], { a: "b" });
      for (const [field, type] of [
        ["storage_options", "object"],
        ["managed_versioning", "boolean"],
        ["transaction_id", "string"],
        ["context", "object"],
      ] as const)
        assert.ok(["undefined", type].includes(typeof answer[field]), field);
    }
  });

  test("every field of the request reaches the implementation, and every field of its answer the caller", async (t) => {
    const seen: unknown[] = [];
    const answer = {
      context: { note: "back" },
      transactionId: "t-1",
      location: "s3://bucket/t",
      storageOptions: { aws_session_token: "s" },
      properties: { owner: "team" },
      managedVersioning: true,
    };
    const fake = await startServer(
      fakeBackend({
        declareTable: async ({ location, vendCredentials, properties, context }, { id }) => {
          seen.push({ id, location, vendCredentials, properties, note: context["note"] });
          return { $typeName: "lance.namespace.v1.DeclareTableResponse", ...answer };
        },
        createTableTag: async ({ tag, version, branch, context }, { id }) => {
          seen.push({ id, tag, version, branch, note: context["note"] });
          const { transactionId, context: back } = answer;
          return { $typeName: "lance.namespace.v1.CreateTableTagResponse", transactionId, context: back };
        },
      }),
    );
    t.onTestFinished(fake.close);
    await using ns = await connect("rest", { uri: `http://127.0.0.1:${fake.port}` });
    const id = ["n", "t"];
    const context = { note: "there" };
    const tagged = { tag: "g", version: 2, branch: "b" };
    for (const vendCredentials of [undefined, true, false]) {
      const declared = { location: "x", properties: { a: "b" } };
      const raw = await post(
        "/v1/table/n$t/declare",
        { ...declared, id, context, identity: {}, vend_credentials: vendCredentials },
        {},
        fake.port,
      );
      assert.deepEqual(jsonOf(raw), {
        context: answer.context,
        transaction_id: "t-1",
        location: "s3://bucket/t",
        storage_options: { aws_session_token: "s" },
        properties: { owner: "team" },
        managed_versioning: true,
      });
      const byClient = await ns.declareTable({ ...declared, id, context, vendCredentials });
      assert.equal(byClient.context["note"], "back");
      const { context: _, ...fields } = answer;
      for (const [name, value] of Object.entries(fields))
        assert.deepEqual(byClient[name as keyof typeof byClient], value, name);
      const asked = { id, ...declared, vendCredentials, note: "there" };
      assert.deepEqual(seen.splice(0), [asked, asked]);
    }
    const body = { ...tagged, id, context, identity: {} };
    const raw = await post("/v1/table/n$t/tags/create", body, {}, fake.port);
    assert.deepEqual(jsonOf(raw), { context: answer.context, transaction_id: "t-1" });
    const byClient = await ns.createTableTag({ ...tagged, id, context });
    assert.deepEqual([byClient.transactionId, byClient.context["note"]], ["t-1", "back"]);
    const asked = { id, ...tagged, version: 2n, note: "there" };
    assert.deepEqual(seen, [asked, asked]);
  });

  test("REST: properties map strings to strings: null is none of them, and no value", async () => {
    const name = fresh("t");
    assert.deepEqual((await done(`/v1/table/${name}/declare`, { properties: null }))["properties"], {});
    for (const [value, told] of [
      [null, /"properties\.owner" must be a string/],
      [1, /"properties\.owner" must be a string/],
      [["a"], /"properties\.owner" must be a string/],
    ] as const) {
      const other = fresh("t");
      const refused = await post(`/v1/table/${other}/declare`, { properties: { a: "b", owner: value } });
      assert.equal(refused.status, 400);
      assert.match(String(jsonOf(refused)["error"]), told);
      assert.equal((await post(`/v1/table/${other}/describe`)).status, 404);
    }
  });

  test("the client, rest: properties of null are those of a service that has none", async (t) => {
    const listening = createServer((_, response) => {
      response.writeHead(200, JSON_TYPE).end('{"location":"s3://bucket/t","properties":null}');
    }).listen(0, "127.0.0.1");
    t.onTestFinished(() => void listening.close());
    await new Promise((resolve) => listening.once("listening", resolve));
    const uri = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
    await using ns = await connect("rest", { uri });
    const { location, properties } = await ns.declareTable({ id: ["t"] });
    assert.deepEqual([location, properties], ["s3://bucket/t", {}]);
  });

  byClient("have empty properties if they were given none", async (ns) => {
    const id = [fresh("t")];
    assert.deepEqual((await ns.declareTable({ id })).properties, {});
    assert.deepEqual((await ns.describeTable({ id })).properties, {});
  });

  test("with managed versioning the answer says so, and the operations on versions answer", async (t) => {
    const { path: root, remove } = await temporaryDirectory();
    const backend = await createDirectoryBackend({ root, log, managedVersioning: true });
    const managed = await startServer(backend);
    t.onTestFinished(remove);
    t.onTestFinished(managed.close);
    const send = (path: string, body: unknown) => post(path, body, {}, managed.port);
    assert.equal(jsonOf(await send("/v1/table/t/declare", {}))["managed_versioning"], true);
    for (const [operation, body] of Object.entries({
      create: { version: 0, manifest_path: "x" },
      describe: { version: 1 },
      list: {},
      delete: { ranges: [{ start_version: 1, end_version: 1 }] },
    })) {
      const { status } = await send(`/v1/table/t/version/${operation}`, body);
      assert.ok(![404, 405, 406].includes(status) || operation === "describe", `${operation}: ${status}`);
    }
    assert.notEqual((await send("/v1/table/version/batch-create", { entries: [] })).status, 406);
  });
});

describe("context", () => {
  test("the client: entries of the request become headers, and every header of the answer an entry", async (t) => {
    let seen: NodeJS.Dict<string | string[]> = {};
    const text = '{"location":"/x","context":{"note":"n"}}';
    const sent = {
      ...JSON_TYPE,
      "content-length": String(text.length),
      "x-request-id": "r",
      "x-mine": "m",
      etag: '"1"',
      server: "s",
      vary: "origin",
      "set-cookie": "a=b",
    };
    const listening = createServer((request, response) => {
      seen = request.headers;
      response.writeHead(200, sent).end(text);
    }).listen(0, "127.0.0.1");
    t.onTestFinished(() => void listening.close());
    await new Promise((resolve) => listening.once("listening", resolve));
    const uri = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
    await using ns = await connect("rest", { uri });
    const { context } = await ns.declareTable({
      id: ["t"],
      context: { "header.X-Trace": "1", "header.Authorization": "Bearer t", other: "o" },
    });
    assert.deepEqual([seen["x-trace"], seen["authorization"]], ["1", "Bearer t"]);
    for (const [name, value] of Object.entries(sent)) assert.equal(context[`header.${name}`], value, name);
    assert.equal(typeof context["header.date"], "string");
    assert.equal(context["note"], "n");
  });

  test("the client: an answer of the gateway has its type, length and request id in the context", async () => {
    const { context } = await (namespaces.rest as Namespace).describeNamespace({ id: [] });
    for (const name of ["content-type", "content-length", "x-request-id", "date"])
      assert.ok(context[`header.${name}`], name);
  });
});

describe("authentication", () => {
  const key = drawKey();
  const facts = { id: key.id, hash: "", created: "2026-01-01T00:00:00.000Z", name: "a reader" };
  const ring = {
    find: (text: string) => (text === key.text ? ({ ...facts, role: "reader" } as const) : "unknown"),
    close() {},
  };
  let secured: TestServer;
  let bearer: string;
  beforeAll(async () => {
    const signing = await signingKey("k");
    const shown = shownKeys();
    shown.keys = [signing];
    const verifiers = [
      verifierWith(shown, trustedIssuer({ grants: [{ role: "reader", to: { kind: "anyone" } }] })),
    ];
    bearer = await sign(signing, claims());
    const ways = [proveByKeys(ring), proveByTokens({ verifiers })];
    secured = await startServer(
      fakeBackend({
        describeNamespace: async () => ({
          $typeName: "lance.namespace.v1.DescribeNamespaceResponse",
          context: {},
          properties: {},
        }),
      }),
      {},
      { authenticator: createAuthenticator(ways, { failed: () => 0 }) },
    );
  });
  afterAll(() => secured.close());
  const describeAs = (headers: Readonly<Record<string, string>>, body = {}) =>
    post("/v1/namespace/n/describe", body, headers, secured.port);

  test("a bearer token, an API key in the header and the identity of the body prove the caller", async () => {
    for (const [name, value] of [
      ["authorization", `Bearer ${bearer}`],
      ["x-api-key", key.text],
    ] as const)
      assert.equal((await describeAs({ [name]: value })).status, 200, name);
    for (const identity of [{ api_key: key.text }, { auth_token: bearer }])
      assert.equal((await describeAs({}, { identity })).status, 200);
  });

  test("the client: properties and the context bring credentials", async () => {
    const uri = `http://127.0.0.1:${secured.port}`;
    await using byKey = await connect("rest", { uri, "headers.x-api-key": key.text });
    await byKey.describeNamespace({ id: ["n"] });
    await using plain = await connect("rest", { uri });
    const context = { "header.Authorization": `Bearer ${bearer}` };
    await plain.describeNamespace({ id: ["n"], context });
  });

  test("the client: the identity of a request proves the caller", async () => {
    await using ns = await connect("rest", { uri: `http://127.0.0.1:${secured.port}` });
    for (const identity of [{ apiKey: key.text }, { authToken: bearer }])
      await ns.describeNamespace({ id: ["n"], identity });
    const refused = await ns.describeNamespace({ id: ["n"] }).catch((error: unknown) => error);
    assert.deepEqual(
      [(refused as LanceError).status, (refused as LanceError).kind],
      [401, "Unauthenticated"],
    );
  });

  test("no valid credentials are 401, and a request that the caller may not make is 403", async () => {
    for (const headers of [{}, { "x-api-key": "wrong" }, { authorization: "Bearer wrong" }]) {
      const answer = await describeAs(headers as Record<string, string>);
      assert.deepEqual([answer.status, jsonOf(answer)["type"]], [401, "/errors/unauthorized-request"]);
    }
    const refused = await post("/v1/namespace/n/create", {}, { "x-api-key": key.text }, secured.port);
    assert.deepEqual([refused.status, jsonOf(refused)["type"]], [403, "/errors/forbidden-request"]);
  });

  test("x-service-database and its prefix choose the database", async (t) => {
    const limits = { maxUploadBytes: 2 ** 20 };
    const database = (name: string) => ({
      backend: fakeBackend({
        describeNamespace: async () => ({
          $typeName: "lance.namespace.v1.DescribeNamespaceResponse" as const,
          context: {},
          properties: { name },
        }),
      }),
      limits,
    });
    const gateway = await serveDatabases(
      new Map(["red", "team/green"].map((name) => [name, database(name)])),
      { routes: [{ by: "header" }], pathPrefix: undefined, fallback: undefined },
      { ...limits, host: "127.0.0.1", port: 0, maxMessageBytes: 2 ** 20, drainSeconds: 0 },
      { log },
    );
    t.onTestFinished(async () => void (await gateway.close()));
    for (const [headers, name] of [
      [{ "x-service-database": "red" }, "red"],
      [{ "x-service-database": "team", "x-service-database-prefix": "green" }, "team/green"],
    ] as const) {
      const answer = await post("/v1/namespace/n/describe", {}, headers, gateway.address.port);
      assert.deepEqual(jsonOf(answer)["properties"], { name });
    }
  });
});

describe("errors", () => {
  let failing: TestServer;
  beforeAll(async () => {
    const fail = async (_request: unknown, { id: [name] }: { readonly id: readonly string[] }) => {
      throw new LanceError(name as ErrorName, "the message", { instance: "elsewhere" });
    };
    failing = await startServer(
      fakeBackend({ declareTable: fail, createTableTag: fail, describeTable: fail }),
    );
  });
  afterAll(() => failing.close());

  for (const [name, status, type, title] of ERRORS) {
    test(`REST: ${status} has the type and the title of the specification`, async () => {
      for (const operation of ["declare", "tags/create", "describe"]) {
        const path = `/v1/table/${name}/${operation}`;
        const answer = await post(path, { tag: "t", version: 1 }, {}, failing.port);
        const { error, code, kind, ...body } = jsonOf(answer);
        assert.deepEqual(body, { type, title, status, detail: "", instance: path });
        assert.deepEqual([answer.status, error, kind], [status, "the message", name]);
        assert.equal(typeof code, "number");
      }
    });

    test(`the client: ${status} is the precise error with its status`, async () => {
      await using ns = await connect("rest", { uri: `http://127.0.0.1:${failing.port}` });
      const id = [name];
      for (const work of [
        () => ns.declareTable({ id }),
        () => ns.createTableTag({ id, tag: "t", version: 1 }),
        () => ns.describeTable({ id }),
      ]) {
        const error = await work().catch((thrown: unknown) => thrown);
        assert.ok(error instanceof LanceError, String(error));
        assert.deepEqual([error.status, error.kind, error.message], [status, name, "the message"]);
      }
    });
  }

  test("every 404, 409 and 400 has the shape, also where the request reaches no operation", async () => {
    const id = fresh("n");
    await done(`/v1/namespace/${id}/create`);
    await done(`/v1/table/${id}$t/declare`);
    for (const [path, status] of [
      [`/v1/namespace/${id}/create`, 409],
      [`/v1/table/${id}$t/declare`, 409],
      [`/v1/table/${id}$missing/describe`, 404],
      [`/v1/namespace/missing/describe`, 404],
      ["/v1/nothing", 404],
      [`/v1/table/${id}$/describe`, 400],
    ] as const) {
      const answer = await post(path);
      const body = jsonOf(answer);
      assert.equal(answer.status, status, path);
      const [, , type, title] = ERRORS.find(([, each]) => each === status) ?? [];
      assert.deepEqual(
        [body["type"], body["title"], body["status"], body["detail"], body["instance"]],
        [type, title, status, "", path],
      );
    }
  });

  byClient("errors have the status of the specification and the precise error", async (ns) => {
    const missing = await ns.describeTable({ id: [fresh("t")] }).catch((error: unknown) => error);
    assert.ok(missing instanceof LanceError);
    assert.deepEqual([missing.status, missing.kind, missing.code], [404, "TableNotFound", 4]);
  });
});
