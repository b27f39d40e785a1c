import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import {
  drain,
  LIMIT_OF_SLOW_READER,
  pour,
  READS,
  readSlowly,
  SIZE,
  STALLS,
  testRedirects,
} from "../../../../../test/fixtures/dir/store-bodies.ts";
import { startFake } from "../../../../../test/fixtures/dir/stores.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { createAzureStore } from "./azure.ts";

/** Opens a store on a fake service, whose answers have the facts of a blob. */
async function openFake(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  timeout = "200ms",
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
    timeout,
  };
  return (await createAzureStore("container", options)).store;
}

for (const [stall, send] of Object.entries(STALLS))
  for (const [name, read] of Object.entries(READS))
    test.concurrent(`${name} fails in time for a body of Azure that ${stall}, and frees its connection`, async (t) => {
      const closed = Promise.withResolvers<void>();
      const store = await openFake(t, (_, response) => {
        response.on("close", closed.resolve);
        send(response);
      });
      await assert.rejects(read(store), failsWith("ServiceUnavailable"));
      await closed.promise;
    });

test("a slow reader does not fail a body of Azure", async (t) => {
  const store = await openFake(
    t,
    (_, response) => void response.end(Buffer.alloc(SIZE)),
    LIMIT_OF_SLOW_READER,
  );
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

const bytes = Buffer.from("ours");

test("a listing of Azure is read from its first byte on", async (t) => {
  const blob = `<Blob><Name>d/k</Name><Properties><Content-Length>3</Content-Length></Properties></Blob>`;
  const listing = `<EnumerationResults><Blobs>${blob}</Blobs><NextMarker/></EnumerationResults>`;
  const store = await openFake(t, (_, response) => {
    response.setHeader("content-type", "application/xml").end(listing);
  });
  assert.equal(await store.exists("d"), true);
  for await (const entries of store.list("d"))
    assert.deepEqual(
      entries.map(({ name }) => name),
      ["k"],
    );
});

/** Requests whose answers are short. */
const SHORT: Readonly<Record<string, (store: ObjectStore) => Promise<unknown>>> = {
  listing: (store) => store.exists("d"),
  copy: (store) => store.copy("k", "l"),
  delete: (store) => store.delete("k"),
  write: (store) => store.put("k", bytes),
  "conditional write": (store) => store.putIfAbsent("k", bytes),
  "long write": (store) => store.putStream("k", Readable.from([Buffer.alloc(2 ** 24), bytes])),
};

for (const [name, make] of Object.entries(SHORT))
  for (const [how, send] of Object.entries({
    "never begins": () => {},
    trickles: (response: ServerResponse) => {
      const timer = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(timer));
    },
  }))
    test.concurrent(`an answer of Azure to a ${name} that ${how} fails in time, and frees its connections`, async (t) => {
      let open = 0;
      let requests = 0;
      const answer = (_: IncomingMessage, response: ServerResponse) => {
        open += 1;
        requests += 1;
        response.on("close", () => {
          open -= 1;
        });
        send(response);
      };
      // On a busy machine, 16 MiB take a while.
      const store = await openFake(t, answer, "1s");
      await assert.rejects(make(store), failsWith("ServiceUnavailable"));
      assert.ok(requests > 0);
      while (open > 0) await sleep(1);
    });

for (const [name, make] of Object.entries(SHORT))
  for (const status of [200, 403])
    test(`an answer of Azure to a ${name} with status ${status} that does not end is cut`, async (t) => {
      let open = 0;
      const store = await openFake(
        t,
        (_, response) => {
          open += 1;
          response.on("close", () => {
            open -= 1;
          });
          response.writeHead(status);
          pour(response);
        },
        "5s",
      );
      await assert.rejects(make(store));
      while (open > 0) await sleep(1);
    });

testRedirects("Azure", openFake);
