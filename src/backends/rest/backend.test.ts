import assert from "node:assert/strict";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { describe, test, vi } from "vitest";
import { callOf, callUnary, sendJson } from "../../../test/fixtures/upstreams/rest.ts";
import {
  describeTable,
  dropTable,
  failing,
  getTableStats,
  listAllTables,
  tableExists,
  upstreamOf,
} from "../../../test/fixtures/upstreams/upstream.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { createRestBackend } from "./index.ts";

describe("what goes to the upstream", () => {
  test("the object as it was resolved, whatever the request spells", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { location: "l" }), {
      delimiter: "~~",
    });
    await callUnary(upstream, describeTable, { identifier: "x.y", delimiter: ".", version: 3n });
    const [{ url = "", body = "", method = "" } = {}] = upstream.seen;
    assert.deepEqual([method, url], ["POST", "/v1/table/n~~t/describe?delimiter=~~"]);
    assert.deepEqual(JSON.parse(body), { id: ["n", "t"], version: 3 });
  });

  test("a name with the upstream's delimiter in it is refused", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, {}), { delimiter: "." });
    await assert.rejects(callUnary(upstream, describeTable, {}, { id: ["a.b"] }), failing("InvalidInput"));
    assert.equal(upstream.seen.length, 0);
  });

  test("names that make the upstream's delimiter where they meet are refused", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, {}), { delimiter: "~~" });
    for (const id of [
      ["a~", "b"],
      ["a~~b", "c"],
    ])
      await assert.rejects(callUnary(upstream, describeTable, {}, { id }), failing("InvalidInput"));
    await callUnary(upstream, describeTable, {}, { id: ["a~b", "c"] });
    assert.equal(upstream.seen.length, 1);
  });

  test("the client's delimiter where it is about the answer", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { tables: [] }), { delimiter: "~~" });
    await callUnary(upstream, listAllTables, { delimiter: "." }, { id: [] });
    await callUnary(upstream, listAllTables, {}, { id: [] });
    assert.deepEqual(
      upstream.seen.map(({ url }) => url),
      ["/v1/table?delimiter=.", "/v1/table?delimiter=%24"],
    );
  });

  test("requests without a body have none, and say all in the query", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, {}));
    await callUnary(upstream, dropTable);
    const [{ body, headers } = { body: "x", headers: {} }] = upstream.seen;
    assert.equal(body, "");
    assert.equal(headers["content-type"], undefined);
  });

  test("the base's path, with and without /v1", async () => {
    for (const path of ["/lance", "/lance/", "/lance/v1/"]) {
      const { uri, seen } = await upstreamOf((response) => sendJson(response, {}));
      const backend = await createRestBackend({ uri: uri + path, log: callOf(dropTable).log });
      await backend.operations.dropTable?.(create(dropTable.input), callOf(dropTable));
      await backend.close();
      assert.equal(seen[0]?.url, "/lance/v1/table/n%24t/drop?delimiter=%24");
    }
  });

  test("a deadline, as the time that is left", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, {}));
    await callUnary(upstream, describeTable, {}, { deadline: Date.now() + 60_000 });
    const left = Number(upstream.seen[0]?.headers["x-request-timeout-ms"]);
    assert.ok(left > 1_000 && left <= 60_000, String(left));
  });

  test("an address that cannot be one is refused at once", async () => {
    for (const uri of ["localhost:2333", "ftp://h", "http://u:p@h", "http://h?x", "http://h#x"]) {
      await assert.rejects(createRestBackend({ uri, log: callOf(dropTable).log }), /address/);
    }
  });
});

describe("servers that differ", () => {
  test("a method that is not allowed is replaced by its other one for the next calls", async () => {
    const upstream = await upstreamOf((response, { method }) => {
      if (method === "GET") sendJson(response, {});
      else response.writeHead(405).end();
    });
    await callUnary(upstream, getTableStats, {});
    await callUnary(upstream, getTableStats, {});
    assert.deepEqual(
      upstream.seen.map(({ method }) => method),
      ["POST", "GET", "GET"],
    );
  });

  test("a method that was refused once is tried again after a minute", async (context) => {
    let refused = "POST";
    const upstream = await upstreamOf((response, { method }) => {
      if (method === refused) response.writeHead(405).end();
      else sendJson(response, {});
    });
    await callUnary(upstream, getTableStats, {});
    refused = "";
    const later = Date.now() + 60_000;
    context.onTestFinished(() => void vi.restoreAllMocks());
    vi.spyOn(Date, "now").mockImplementation(() => later);
    await callUnary(upstream, getTableStats, {});
    refused = "GET";
    await callUnary(upstream, getTableStats, {});
    assert.deepEqual(
      upstream.seen.map(({ method }) => method),
      ["POST", "GET", "POST", "POST"],
    );
  });

  test("an operation whose second form is refused later goes back to its first at once", async () => {
    let refused = "POST";
    const upstream = await upstreamOf((response, { method }) => {
      if (method === refused || refused === "both") response.writeHead(405).end();
      else sendJson(response, {});
    });
    await callUnary(upstream, getTableStats, {});
    refused = "GET";
    await callUnary(upstream, getTableStats, {});
    refused = "both";
    await assert.rejects(callUnary(upstream, getTableStats, {}), failing("Unsupported"));
    assert.deepEqual(
      upstream.seen.map(({ method }) => method),
      ["POST", "GET", "GET", "POST", "POST", "GET"],
    );
  });

  test("a method without another is Unsupported", async () => {
    const upstream = await upstreamOf((response) => response.writeHead(405).end());
    await assert.rejects(callUnary(upstream, describeTable), failing("Unsupported"));
  });

  for (const status of [200, 201, 204]) {
    test(`existence by ${status}`, async () => {
      const upstream = await upstreamOf((response) => response.writeHead(status).end());
      await callUnary(upstream, tableExists);
    });
  }
});

test("only requests that tell all they need are forwarded beyond the contract", async () => {
  const upstream = await upstreamOf(() => {});
  assert.deepEqual(Object.keys(upstream.backend.extensions ?? {}).sort(), [
    "abortMultipartWrite",
    "addColumnsFromSchema",
    "cancelJob",
    "cherryPickBranch",
    "cloneTable",
    "completeMultipartWrite",
    "createMultipartWrite",
    "createView",
    "describeJob",
    "describeMaterializedView",
    "describePageCache",
    "describeView",
    "diffBranch",
    "dropMaterializedView",
    "dropView",
    "fetchBlobs",
    "getLsmWriteSpec",
    "listJobs",
    "listMaterializedViews",
    "listViews",
    "prewarmData",
    "prewarmIndex",
    "queryJobEvents",
    "readBlob",
    "setLsmWriteSpec",
    "unsetLsmWriteSpec",
  ]);
  const methods: readonly DescMethod[] = LanceNamespaceService.methods;
  assert.equal(Object.keys(upstream.backend.operations).length, methods.length);
});
