import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { CallError, type LanceClient } from "../support/client.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

describe("a gateway with a rate limit", () => {
  let server: DirectoryServer;
  // A call in a thousand seconds: the limit does not recover within the test.
  beforeAll(async () => {
    server = await startDirectoryServer({ rateLimits: [{ scope: "address", perSecond: 0.001, burst: 1 }] });
    assert.equal((await fetch(`http://127.0.0.1:${server.port}/v1/namespace/$/table/list`)).status, 200);
  });
  afterAll(() => server.close());

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: refuses calls beyond it, whatever their headers say of their address`, async () => {
      const clients = createProtocolClients(server.port, { "x-forwarded-for": protocol });
      const client = clients[protocol]?.client as LanceClient;
      const error = await client.listTables({ id: [] }).catch((thrown: CallError) => thrown);
      for (const { close } of Object.values(clients)) close();
      assert.ok(error instanceof CallError);
      const { code, httpStatus, grpcCode } = error.failure;
      assert.deepEqual([code, httpStatus ?? grpcCode], [21, protocol === "REST" ? 429 : 8]);
    });
  }

  test("says in a header when to come again", async () => {
    const { status, headers } = await fetch(`http://127.0.0.1:${server.port}/v1/namespace/$/table/list`);
    assert.equal(status, 429);
    assert.ok(Number(headers.get("retry-after")) > 1);
  });

  test("answers probes", async () => {
    assert.equal((await fetch(`http://127.0.0.1:${server.port}/healthz`)).status, 200);
  });
});
