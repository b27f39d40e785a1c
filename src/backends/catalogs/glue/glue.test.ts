import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { describe, it, onTestFinished } from "vitest";
import { createCaller } from "../../../../test/support/caller.ts";
import { refused } from "../../../../test/support/expect.ts";
import type { ErrorName } from "../../../namespace/errors.ts";
import { createGlueBackend } from "./index.ts";

type Answer = readonly [status: number, body: object] | "reset" | "silent";

/** Starts a service that answers each action of Glue as told, and returns a client of a gateway in front of it. */
async function serve(
  answer: (action: string, body: Record<string, unknown>) => Answer,
  { within, ...timeLimits }: { readonly firstByteMs?: number; readonly within?: string[] } = {},
) {
  const actions: string[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const action = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    actions.push(action);
    send(response, answer(action, JSON.parse(text)));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const backend = await createGlueBackend({
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
    timeLimits,
    within,
    resilience: { log: pino({ level: "silent" }), backoffMs: 1 },
  });
  onTestFinished(async () => {
    await backend.close();
    server.closeAllConnections();
    server.close();
  });
  return { client: createCaller({ backend, limits: { maxUploadBytes: 1 } }), backend, actions };
}

function send(response: ServerResponse, answer: Answer): void {
  if (answer === "silent") return;
  if (answer === "reset") {
    response.destroy();
    return;
  }
  const [status, body] = answer;
  response.writeHead(status, { "content-type": "application/x-amz-json-1.1" });
  response.end(JSON.stringify(body));
}

const table = (Name: string, more: object = {}) => ({
  Name,
  TableType: "EXTERNAL_TABLE",
  Parameters: { table_type: "LANCE" },
  StorageDescriptor: { Location: `s3://lake/${Name}.lance` },
  ...more,
});

describe("the Glue backend", () => {
  const errors: readonly (readonly [ErrorName, number, string])[] = [
    ["TableNotFound", 400, "EntityNotFoundException"],
    ["PermissionDenied", 400, "AccessDeniedException"],
    ["ServiceUnavailable", 400, "UnrecognizedClientException"],
    ["ServiceUnavailable", 400, "ExpiredTokenException"],
    ["InvalidInput", 400, "InvalidInputException"],
    ["Throttling", 400, "ThrottlingException"],
    ["DeadlineExceeded", 400, "OperationTimeoutException"],
    ["ServiceUnavailable", 500, "InternalServiceException"],
    ["ServiceUnavailable", 503, "ServiceUnavailable"],
    ["InvalidInput", 400, "SomethingNewException"],
    ["InvalidInput", 400, "GlueEncryptionException"],
  ];
  for (const [name, status, type] of errors) {
    it(`answers ${name} for ${type}`, async () => {
      const { client } = await serve(() => [status, { __type: type, message: "arn:aws:iam::1:role/secret" }]);
      const error = await refused(name, client.describeTable({ id: ["d", "t"] }));
      if (type !== "InvalidInputException") assert.doesNotMatch(error.message, /arn:aws/);
    });
  }

  it("repeats a read after a failure, and not a change that may have been made", async () => {
    let failures = 1;
    const { client, actions } = await serve((action) => {
      if (action === "GetDatabase") return [200, { Database: { Name: "d" } }];
      if (failures-- > 0) return "reset";
      return [200, { Table: table("t") }];
    });
    await client.describeTable({ id: ["d", "t"] });
    assert.deepEqual(actions, ["GetTable", "GetTable"]);
    failures = 1;
    const declared = client.declareTable({ id: ["d", "t"], location: "s3://lake/t.lance" });
    await refused("OutcomeUnknown", declared);
    assert.deepEqual(actions.slice(2), ["GetDatabase", "CreateTable"]);
  });

  it("reports a create without an answer as unknown or late, and sends it once", async () => {
    const { client, actions } = await serve(
      (action) => (action === "GetDatabase" ? [200, { Database: { Name: "d" } }] : "silent"),
      { firstByteMs: 200 },
    );
    const declared = client.declareTable({ id: ["d", "t"], location: "s3://lake/t.lance" });
    await refused(["OutcomeUnknown", "DeadlineExceeded"], declared);
    assert.deepEqual(actions, ["GetDatabase", "CreateTable"]);
    const failed = await serve((action) =>
      action === "GetDatabase"
        ? [200, { Database: { Name: "d" } }]
        : [500, { __type: "InternalServiceException" }],
    );
    const again = failed.client.declareTable({ id: ["d", "t"], location: "s3://lake/t.lance" });
    await refused("OutcomeUnknown", again);
  });

  it("refuses endless pages, and a page that names itself", async () => {
    let page = 0;
    const { client, actions } = await serve(() => {
      page += 1;
      return [200, { TableList: [], NextToken: String(page) }];
    });
    await refused("ServiceUnavailable", client.listTables({ id: ["d"] }));
    assert.ok(actions.length <= 1_000);
    const same = await serve(() => [200, { TableList: [table("t")], NextToken: "same" }]);
    await refused("ServiceUnavailable", same.client.listTables({ id: ["d"] }));
    assert.equal(same.actions.length, 2);
  });

  it("drops no namespace of which an empty page does not show that it has no tables", async () => {
    const { client, actions } = await serve(() => [
      200,
      { Database: { Name: "d" }, TableList: [], NextToken: "more" },
    ]);
    await refused("NamespaceNotEmpty", client.dropNamespace({ id: ["d"] }));
    assert.ok(!actions.includes("DeleteDatabase"));
    const empty = await serve(() => [200, { Database: { Name: "d" }, TableList: [] }]);
    await empty.client.dropNamespace({ id: ["d"] });
    assert.equal(empty.actions.at(-1), "DeleteDatabase");
  });

  it("lists at most as many names as are asked for, though the service ignores the size", async () => {
    const names = ["c", "a", "b", "d", "e"];
    const { client } = await serve((_, { NextToken }) =>
      NextToken === undefined
        ? [200, { TableList: names.slice(0, 3).map((name) => table(name)), NextToken: "2" }]
        : [200, { TableList: names.slice(3).map((name) => table(name)) }],
    );
    const seen: string[] = [];
    let pageToken: string | undefined;
    do {
      const page = await client.listTables({ id: ["d"], limit: 2, ...(pageToken && { pageToken }) });
      assert.ok(page.tables.length <= 2);
      seen.push(...page.tables);
      pageToken = page.pageToken;
    } while (pageToken);
    assert.deepEqual(seen.toSorted(), names.toSorted());
  });

  it("refuses an answer that is too large, and names and locations that lead elsewhere", async () => {
    const { client } = await serve((action, { Name, DatabaseName }) => {
      if (action === "GetDatabases") {
        const Parameters = { x: "x".repeat(5 * 1024 ** 2) };
        return [200, { DatabaseList: [{ Name: "d", Parameters }] }];
      }
      if (action === "GetTables") {
        const bad = ["a/b", "a$b", "..", "", "a\u0000", "fine"];
        return [200, { TableList: bad.map((name) => table(name)) }];
      }
      if (Name === "other") return [200, { Table: table("t") }];
      if (Name === "elsewhere") return [200, { Table: table("elsewhere", { DatabaseName: "x" }) }];
      const Location = Name === "bare" ? undefined : "s3://lake/../other/t";
      return [200, { Table: table(String(Name), { DatabaseName, StorageDescriptor: { Location } }) }];
    });
    await refused("ServiceUnavailable", client.listNamespaces({ id: [] }));
    assert.deepEqual((await client.listTables({ id: ["d"] })).tables, ["fine"]);
    await refused("InvalidTableState", client.describeTable({ id: ["d", "t"] }));
    await refused("InvalidTableState", client.describeTable({ id: ["d", "bare"] }));
    // The service has turned the name into another one.
    await refused("TableNotFound", client.describeTable({ id: ["d", "other"] }));
    await refused("TableNotFound", client.describeTable({ id: ["d", "elsewhere"] }));
    await refused("InvalidInput", client.describeTable({ id: ["d", "Upper"] }));
    await refused("InvalidInput", client.listTables({ id: ["D"] }));
  });

  it("does not follow a redirect, and is not ready while the service fails", async () => {
    const { client, backend, actions } = await serve(() => [307, {}]);
    await refused("ServiceUnavailable", client.describeTable({ id: ["d", "t"] }));
    assert.ok(actions.length <= 3);
    assert.equal(await backend.ready(), true);
    const failing = await serve(() => [500, { __type: "InternalServiceException" }]);
    assert.equal(await failing.backend.ready(), false);
  });

  it("opens its circuit, and asks the service no more", async () => {
    const { client, actions } = await serve(() => [503, { __type: "ServiceUnavailable" }]);
    for (let call = 0; call < 20; call += 1)
      await refused("ServiceUnavailable", client.describeTable({ id: ["d", "t"] }));
    assert.ok(actions.length < 20, String(actions.length));
  });

  it("shows a database as the root, in which tables have a single name", async () => {
    const { client } = await serve(
      (action, { DatabaseName, Name }) => {
        if (action === "GetDatabase") return [200, { Database: { Name, LocationUri: "s3://lake/sales/" } }];
        if (action === "GetTables") return [200, { TableList: [table("orders", { DatabaseName })] }];
        return [200, { Table: table(String(Name), { DatabaseName }) }];
      },
      { within: ["sales"] },
    );
    assert.deepEqual((await client.listTables({ id: [] })).tables, ["orders"]);
    assert.deepEqual((await client.listNamespaces({ id: [] })).namespaces, []);
    const { location, namespace } = await client.describeTable({ id: ["orders"] });
    assert.equal(location, "s3://lake/orders.lance");
    assert.deepEqual(namespace, []);
    const declared = await client.declareTable({ id: ["visits"] });
    assert.match(declared.location ?? "", /^s3:\/\/lake\/sales\/[0-9a-v]{14}_visits$/);
    await refused("InvalidInput", client.createNamespace({ id: ["child"] }));
    await refused("InvalidInput", client.dropNamespace({ id: [] }));
  });

  it("needs a region", async () => {
    await assert.rejects(
      createGlueBackend({ region: undefined, resilience: { log: pino({ level: "silent" }) } }),
      /needs a region: --glue-region or AWS_REGION/,
    );
  });
});
