import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, it, onTestFinished } from "vitest";
import { beginCall, createCaller } from "../../../test/support/caller.ts";
import {
  type CatalogAnswer,
  type CatalogServer,
  startCatalogServer,
} from "../../../test/support/catalogs/catalog-server.ts";
import { startIcebergServer } from "../../../test/support/catalogs/iceberg-server.ts";
import { startUnityServer } from "../../../test/support/catalogs/unity-server.ts";
import type { LanceClient } from "../../../test/support/client.ts";
import { refused } from "../../../test/support/expect.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { DeclareTableRequestSchema } from "../../gen/lance/namespace/v1/table_pb.ts";
import { type ErrorName, isLanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { createLakekeeperBackend, createPolarisBackend } from "./iceberg/index.ts";
import { createUnityBackend } from "./unity/index.ts";

const shared = {
  log: pino({ level: "silent" }),
  resilience: { backoffMs: 1 },
  timeLimits: { firstByteMs: 300, idleMs: 300 },
};

/** A catalog behind the gateway, with a namespace. */
interface Opened {
  readonly server: CatalogServer;
  readonly backend: Backend;
  readonly client: LanceClient;
  readonly namespace: string[];
}

const KINDS: Readonly<Record<string, () => Promise<Omit<Opened, "client">>>> = {
  async polaris() {
    const server = await startIcebergServer("polaris");
    const { url: uri, warehouse } = server;
    return { server, backend: await createPolarisBackend({ ...shared, uri, warehouse }), namespace: ["ns"] };
  },
  async lakekeeper() {
    const server = await startIcebergServer("lakekeeper");
    const { url: uri, warehouse } = server;
    return {
      server,
      backend: await createLakekeeperBackend({ ...shared, uri, warehouse }),
      namespace: ["ns"],
    };
  },
  async unity() {
    const server = await startUnityServer();
    const backend = await createUnityBackend({ ...shared, uri: server.url });
    return { server, backend, namespace: [server.catalog, "ns"] };
  },
};

async function open(kind: string): Promise<Opened> {
  const opened = await (KINDS[kind] as (typeof KINDS)[string])();
  onTestFinished(async () => {
    await opened.backend.close();
    await opened.server.close();
  });
  const client = createCaller({ backend: opened.backend, limits: { maxUploadBytes: 1 } });
  await client.createNamespace({ id: opened.namespace });
  return { ...opened, client };
}

const isChange = ({ method, path }: { readonly method: string; readonly path: string }) =>
  method === "POST" && /tables$/.test(path);

for (const kind of Object.keys(KINDS))
  describe(`the ${kind} backend, with faults`, () => {
    it("repeats reads after 503 and lost connections", async () => {
      const { server, client, namespace } = await open(kind);
      for (const fault of [{ status: 503 }, "reset"] as const) {
        let faults = 1;
        server.before = () => (faults-- > 0 ? fault : undefined);
        await client.describeNamespace({ id: namespace });
      }
    });

    it("sends a creation once, and reports a lost or late answer of one that was made", async () => {
      const { server, client, namespace } = await open(kind);
      const cases: readonly (readonly [CatalogAnswer, readonly ErrorName[]])[] = [
        ["reset", ["OutcomeUnknown"]],
        ["silent", ["DeadlineExceeded"]],
        [{ status: 502 }, ["OutcomeUnknown"]],
        [{ status: 200, body: "not JSON" }, ["OutcomeUnknown"]],
      ];
      for (const [index, [answer, names]] of cases.entries()) {
        const id = [...namespace, `t${index}`];
        server.after = (request, done) => (isChange(request) ? answer : done);
        const before = server.requests.filter(isChange).length;
        await refused(names, client.declareTable({ id, location: "s3://lake/t" }));
        assert.equal(server.requests.filter(isChange).length, before + 1);
        server.after = undefined;
        // The effect shows: the table is there.
        await client.tableExists({ id });
        await refused("TableAlreadyExists", client.declareTable({ id, location: "s3://lake/t" }));
      }
    });

    it("passes a denial of credentials on to a caller that asks for them, and describes without for others", async () => {
      const { server, client, namespace } = await open(kind);
      const id = [...namespace, "t"];
      await client.declareTable({ id, location: "s3://lake/t" });
      server.before = ({ path, headers }) => {
        const asks = path.endsWith("credentials") || Object.values(headers).includes("vended-credentials");
        return asks ? { status: 403 } : undefined;
      };
      await refused("PermissionDenied", client.describeTable({ id, vendCredentials: true }));
      assert.equal((await client.describeTable({ id })).location, "s3://lake/t");
      assert.equal((await client.describeTable({ id, vendCredentials: false })).location, "s3://lake/t");
    });

    it("lets only callers who may manage a table declare it at a location of their choice", async () => {
      const { backend, namespace, client } = await open(kind);
      const id = [...namespace, "t"];
      const { method } = LanceNamespaceService;
      const request = create(DeclareTableRequestSchema, { id, location: "s3://lake/other" });
      const may = (action: string) => action !== "manage";
      await assert.rejects(
        async () => backend.operations.declareTable?.(request, beginCall(method.declareTable, { id, may })),
        (error) => isLanceError(error, "PermissionDenied") && /manage/.test(error.message),
      );
      await refused("TableNotFound", client.describeTable({ id }));
    });

    it("reports a stale listing as it is, and describes the truth", async () => {
      const { server, client, namespace } = await open(kind);
      const id = [...namespace, "t"];
      await client.declareTable({ id, location: "s3://lake/t" });
      await client.listTables({ id: namespace });
      const stale = new Map<string, CatalogAnswer>();
      server.after = (request, done) => {
        if (request.method !== "GET" || !/tables$/.test(request.path)) return done;
        const known = stale.get(request.path) ?? done;
        stale.set(request.path, known);
        return known;
      };
      await client.listTables({ id: namespace });
      await client.deregisterTable({ id });
      assert.deepEqual((await client.listTables({ id: namespace })).tables, ["t"]);
      await refused("TableNotFound", client.describeTable({ id }));
    });

    it("refuses pages without end, huge answers, and answers of another form", async () => {
      const { server, client, namespace } = await open(kind);
      let page = 0;
      server.before = () => {
        page += 1;
        const next = String(page);
        return {
          status: 200,
          body: { identifiers: [], tables: [], "next-page-token": next, next_page_token: next, namespace },
        };
      };
      await refused("ServiceUnavailable", client.listTables({ id: namespace }));
      assert.ok(page <= 1_001, String(page));
      for (const body of [
        "x".repeat(5 * 1024 ** 2),
        "[]",
        "null",
        "<html>",
        '{"identifiers":7,"tables":7,"namespace":7}',
      ]) {
        server.before = () => ({ status: 200, body });
        await refused("ServiceUnavailable", client.listTables({ id: namespace }));
      }
    });

    it("does not follow a redirect with its credentials", async () => {
      const { server, client, namespace } = await open(kind);
      const other = await startCatalogServer(() => ({ status: 200, body: {} }));
      onTestFinished(other.close);
      server.before = () => ({ status: 307, headers: { location: `${other.url}/steal` } });
      await refused("ServiceUnavailable", client.describeNamespace({ id: namespace }));
      assert.equal(other.requests.length, 0);
    });

    it("reads errors of the service, its proxies and its absence", async () => {
      const { server, client, namespace } = await open(kind);
      const cases: readonly (readonly [CatalogAnswer, ErrorName])[] = [
        [{ status: 401 }, "Unauthenticated"],
        [{ status: 403 }, "PermissionDenied"],
        [
          { status: 400, body: { error: { message: "bad", type: "BadRequestException", code: 400 } } },
          "InvalidInput",
        ],
        [{ status: 429 }, "Throttling"],
        [{ status: 500 }, "Internal"],
        [{ status: 501 }, "Unsupported"],
        [{ status: 404, body: "<html>", headers: { "content-type": "text/html" } }, "Unsupported"],
        [{ status: 404 }, "NamespaceNotFound"],
      ];
      for (const [answer, name] of cases) {
        server.before = () => answer;
        await refused(name, client.describeNamespace({ id: namespace }));
      }
    });

    it("refuses locations that lead elsewhere, and names of another object", async () => {
      const { server, client, namespace } = await open(kind);
      const id = [...namespace, "t"];
      await client.declareTable({ id, location: "s3://lake/t" });
      const changed = (from: string, to: string) => {
        server.after = (_, done) =>
          typeof done === "object" && typeof done.body === "object"
            ? { ...done, body: JSON.parse(JSON.stringify(done.body).replaceAll(from, to)) }
            : done;
      };
      changed("s3://lake/t", "s3://lake/../other/t");
      await refused("InvalidTableState", client.describeTable({ id }));
      changed('"name":"t"', '"name":"other"');
      await refused("TableNotFound", client.describeTable({ id }));
      changed('"name":"t"', '"name":"a/../b"');
      assert.deepEqual((await client.listTables({ id: namespace })).tables, []);
    });

    it("is ready while the service answers", async () => {
      const { server, backend } = await open(kind);
      assert.equal(await backend.ready(), true);
      server.before = () => ({ status: 500 });
      assert.equal(await backend.ready(), false);
      server.before = () => "reset";
      assert.equal(await backend.ready(), false);
    });
  });

describe("the lakekeeper backend", () => {
  it("does not find a namespace under another spelling than the catalog's own", async () => {
    const { server, client } = await open("lakekeeper");
    await client.declareTable({ id: ["ns", "t"], location: "s3://lake/t" });
    server.before = ({ path }) =>
      path.endsWith("/namespaces/NS")
        ? { status: 200, body: { namespace: ["ns"], properties: {} } }
        : undefined;
    await refused("NamespaceNotFound", client.describeNamespace({ id: ["NS"] }));
    await refused("NamespaceNotFound", client.describeTable({ id: ["NS", "t"] }));
    await refused("NamespaceNotFound", client.listTables({ id: ["NS"] }));
    await refused("NamespaceNotFound", client.declareTable({ id: ["NS", "t"], location: "s3://lake/t" }));
    await client.describeTable({ id: ["ns", "t"] });
  });
});

describe("credentials for a foreign catalog", () => {
  const describing = (client: LanceClient) => client.describeNamespace({ id: ["ns"] });

  it("are renewed when the service refuses them, and a refusal of the gateway's own is not the client's", async () => {
    const server = await startIcebergServer("polaris");
    onTestFinished(server.close);
    let issued = 0;
    const identity = {
      isOwn: true,
      credentials: () => ({ authorization: `Bearer token-${issued}` }),
      refused() {
        issued += 1;
        return true;
      },
    };
    const { url: uri, warehouse } = server;
    const backend = await createPolarisBackend({ ...shared, uri, warehouse, identity });
    onTestFinished(() => backend.close());
    const client = createCaller({ backend, limits: { maxUploadBytes: 1 } });
    server.tokens = new Set(["token-0"]);
    await client.createNamespace({ id: ["ns"] });
    // The token expires in the middle of the session.
    server.tokens = new Set(["token-1"]);
    await describing(client);
    server.tokens = new Set();
    await refused("ServiceUnavailable", describing(client));
  });

  it("come from the provider by client credentials, and are fetched again after a refusal", async () => {
    const server = await startIcebergServer("polaris");
    onTestFinished(server.close);
    let issued = 0;
    const provider = await startCatalogServer(() => {
      issued += 1;
      server.tokens = new Set([`issued-${issued}`]);
      return {
        status: 200,
        body: { access_token: `issued-${issued}`, token_type: "bearer", expires_in: 3_600 },
      };
    });
    onTestFinished(provider.close);
    const { url: uri, warehouse } = server;
    const identity = {
      kind: "exchange",
      grant: "client_credentials",
      tokenEndpoint: `${provider.url}/token`,
      clientId: "gateway",
      clientSecret: "secret",
      allowInsecure: true,
    } as const;
    const backend = await createPolarisBackend({ ...shared, uri, warehouse, identity });
    onTestFinished(() => backend.close());
    const client = createCaller({ backend, limits: { maxUploadBytes: 1 } });
    await client.createNamespace({ id: ["ns"] });
    await describing(client);
    assert.equal(issued, 1);
  });
});

describe("credentials that a catalog hands out", () => {
  it("become the options of Lance's clients, with their expiry", async () => {
    const server = await startIcebergServer("lakekeeper");
    onTestFinished(server.close);
    const { url: uri, warehouse } = server;
    const backend = await createLakekeeperBackend({ ...shared, uri, warehouse });
    onTestFinished(() => backend.close());
    const client = createCaller({ backend, limits: { maxUploadBytes: 1 } });
    server.credentials = {
      "s3.access-key-id": "id",
      "s3.secret-access-key": "secret",
      "s3.session-token": "token",
      "s3.session-token-expires-at-ms": "1900000000000",
      "s3.endpoint": "http://127.0.0.1:9000",
      "s3.region": "us-east-1",
      "s3.path-style-access": "true",
      "s3.remote-signing-enabled": "true",
    };
    await client.createNamespace({ id: ["ns"] });
    const declared = await client.declareTable({ id: ["ns", "t"], location: "s3://lake/t" });
    const described = await client.describeTable({ id: ["ns", "t"] });
    assert.deepEqual(declared.storageOptions, described.storageOptions);
    assert.deepEqual(described.storageOptions, {
      aws_access_key_id: "id",
      access_key_id: "id",
      aws_secret_access_key: "secret",
      secret_access_key: "secret",
      aws_session_token: "token",
      session_token: "token",
      expires_at_millis: "1900000000000",
      aws_endpoint: "http://127.0.0.1:9000",
      allow_http: "true",
      aws_region: "us-east-1",
      aws_virtual_hosted_style_request: "false",
    });
    const without = await client.describeTable({ id: ["ns", "t"], vendCredentials: false });
    assert.deepEqual(without.storageOptions, {});
  });

  it("are those of Unity's temporary credentials", async () => {
    const server = await startUnityServer();
    onTestFinished(server.close);
    const backend = await createUnityBackend({ ...shared, uri: server.url, within: ["main"] });
    onTestFinished(() => backend.close());
    const client = createCaller({ backend, limits: { maxUploadBytes: 1 } });
    await client.createNamespace({ id: ["ns"] });
    await client.declareTable({ id: ["ns", "t"], location: "s3://lake/t" });
    assert.deepEqual((await client.describeTable({ id: ["ns", "t"] })).storageOptions, {});
    const aws_temp_credentials = { access_key_id: "id", secret_access_key: "s", session_token: "t" };
    server.credentials = { aws_temp_credentials, expiration_time: 1_900_000_000_000 };
    const { storageOptions } = await client.describeTable({ id: ["ns", "t"] });
    assert.equal(storageOptions["aws_session_token"], "t");
    assert.equal(storageOptions["expires_at_millis"], "1900000000000");
    const asked = server.requests.filter(({ path }) => path.endsWith("temporary-table-credentials"));
    assert.deepEqual(asked.at(-1)?.body, { table_id: "id-of-main.ns.t", operation: "READ_WRITE" });
  });
});
