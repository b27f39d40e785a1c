import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type TestContext, test } from "vitest";
import { failsWith } from "../test-support.ts";
import { createAzureStore } from "./azure.ts";
import { begin, drain, READS, readSlowly, SIZE, trickle } from "./bodies-fixture.ts";
import { startFake } from "./fixture.ts";

/** Opens a store on a fake service, whose answers have the facts of a blob. */
async function openFake(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
) {
  const endpoint = await startFake(t, (request, response) => {
    request.resume();
    response.setHeader("etag", '"1"');
    response.setHeader("last-modified", new Date(0).toUTCString());
    if (request.method === "HEAD") response.setHeader("content-length", String(SIZE)).end();
    else answer(request, response);
  });
  const account = { azure_storage_account_name: "account", azure_storage_account_key: "AAAA" };
  const options = {
    ...account,
    azure_storage_endpoint: endpoint,
    azure_allow_http: "true",
    timeout: "200ms",
  };
  return (await createAzureStore("container", options)).store;
}

const STALLS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "stops in the middle": begin,
  trickles: trickle,
};

for (const [stall, send] of Object.entries(STALLS))
  for (const [name, read] of Object.entries(READS))
    test(`${name} fails in time for a body of Azure that ${stall}, and frees its connection`, async (t) => {
      const closed = Promise.withResolvers<void>();
      const store = await openFake(t, (_, response) => {
        response.on("close", closed.resolve);
        send(response);
      });
      await assert.rejects(read(store), failsWith("ServiceUnavailable"));
      await closed.promise;
    });

test("a slow reader does not fail a body of Azure", async (t) => {
  const store = await openFake(t, (_, response) => void response.end(Buffer.alloc(SIZE)));
  assert.equal(await readSlowly(store), SIZE);
  await drain(store);
});

test("a copy that Azure leaves pending is given up in time", async (t) => {
  let looks = 0;
  const store = await openFake(t, (_, response) => {
    response.setHeader("x-ms-copy-id", "1").setHeader("x-ms-copy-status", "pending");
    response.writeHead(202).end();
    looks += 1;
  });
  await assert.rejects(store.copy("k", "l"), failsWith("ServiceUnavailable"));
  assert.ok(looks > 0);
});
