import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import {
  begin,
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
import { createGcsStore } from "./gcs.ts";

/** The library compares it with what it uploaded. */
const CRC_OF_4_ZEROS = "SGdLxw==";

/** Opens a store on a fake service. */
async function openFake(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  timeout = "200ms",
) {
  const gcs_base_url = await startFake(t, (request, response) => {
    request.resume();
    answer(request, response);
  });
  const key = JSON.stringify({ gcs_base_url, disable_oauth: true });
  return (await createGcsStore("bucket", { google_service_account_key: key, timeout })).store;
}

const isBody = ({ url = "" }: IncomingMessage) => url.includes("alt=media");

function sendFacts(response: ServerResponse): void {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ generation: "1", size: String(SIZE), crc32c: CRC_OF_4_ZEROS }));
}

for (const [stall, send] of Object.entries(STALLS))
  for (const [name, read] of Object.entries(READS))
    test.concurrent(`${name} fails in time for a body of Google that ${stall}`, async (t) => {
      const store = await openFake(t, (request, response) =>
        isBody(request) ? send(response) : sendFacts(response),
      );
      await assert.rejects(read(store), failsWith("ServiceUnavailable"));
    });

test("a body that is given up frees its connection, and leaves other requests alone", async (t) => {
  const closed = Promise.withResolvers<void>();
  const neighbour = Promise.withResolvers<ServerResponse>();
  let bodies = 0;
  const store = await openFake(t, (request, response) => {
    if (request.url?.includes("neighbour") && isBody(request)) {
      response.writeHead(200, { "content-length": "4" });
      response.write("ab");
      neighbour.resolve(response);
    } else if (isBody(request)) {
      bodies += 1;
      response.on("close", closed.resolve);
      begin(response);
    } else sendFacts(response);
  });
  const stream = await store.getStream("neighbour");
  assert.ok(stream !== undefined);
  const chunks = stream[Symbol.asyncIterator]();
  const first = chunks.next();
  const response = await neighbour.promise;
  await first;
  await assert.rejects(drain(store), failsWith("ServiceUnavailable"));
  await closed.promise;
  assert.equal(bodies, 1);
  response.end("cd");
  assert.equal(Buffer.from((await chunks.next()).value ?? []).toString(), "cd");
});

test("a body of Google makes Node warn of nothing", async (t) => {
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  process.on("warning", note);
  t.onTestFinished(() => void process.off("warning", note));
  const store = await openFake(t, (request, response) => {
    if (!isBody(request)) return sendFacts(response);
    begin(response);
    setTimeout(() => response.end(Buffer.alloc(SIZE / 2)), 20);
  });
  await drain(store);
  // Node tells warnings in the next turn.
  await sleep(1);
  assert.deepEqual(warnings, []);
});

test("a slow reader does not fail a body", async (t) => {
  const store = await openFake(
    t,
    (request, response) => (isBody(request) ? response.end(Buffer.alloc(SIZE)) : sendFacts(response)),
    LIMIT_OF_SLOW_READER,
  );
  assert.equal(await readSlowly(store), SIZE);
});

const LONG = [Buffer.alloc(2 ** 24), Buffer.alloc(1)];

const WRITES: Record<string, readonly [silent: RegExp, write: (store: ObjectStore) => Promise<unknown>]> = {
  copy: [/rewriteTo/, (store) => store.copy("k", "l")],
  "short upload": [/upload/, (store) => store.putStream("k", streamOf([Buffer.alloc(4)]))],
  "start of a long upload": [/uploadType=resumable/, (store) => store.putStream("k", streamOf(LONG))],
  "piece of a long upload": [/session/, (store) => store.putStream("k", streamOf(LONG))],
};

async function* streamOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

for (const [name, [silent, write]] of Object.entries(WRITES))
  test.concurrent(`a ${name} that Google does not answer is given up in time`, async (t) => {
    let requests = 0;
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      if (silent.test(request.url ?? "")) requests += 1;
      else {
        response.setHeader("location", `http://${request.headers.host}/session`);
        sendFacts(response);
      }
    };
    // On a busy machine, 16 MiB take a while.
    const store = await openFake(t, answer, "1s");
    await assert.rejects(write(store), failsWith("ServiceUnavailable"));
    assert.ok(requests > 0);
  });

test("changes under a condition name the generation in their queries, as the service documents", async (t) => {
  const seen: string[] = [];
  const answer = ({ method, url = "" }: IncomingMessage, response: ServerResponse) => {
    seen.push(`${method} ${new URLSearchParams(url.split("?")[1]).get("ifGenerationMatch")}`);
    sendFacts(response);
  };
  // A request that is late on a busy machine is repeated.
  const store = await openFake(t, answer, "30s");
  await store.deleteTagged("k", "7");
  await store.replace("k", new Uint8Array(4), "8");
  await store.putIfAbsent("k", new Uint8Array(4));
  assert.deepEqual(seen, ["DELETE 7", "POST 8", "POST 0"]);
});

for (const [name, make] of Object.entries({
  ...READS,
  head: (store: ObjectStore) => store.head("k"),
  listing: (store: ObjectStore) => store.exists("d"),
  write: (store: ObjectStore) => store.put("k", Buffer.alloc(4)),
  "conditional write": (store: ObjectStore) => store.putIfAbsent("k", Buffer.alloc(4)),
}))
  test.concurrent(`a ${name} that Google does not answer frees its connections`, async (t) => {
    let open = 0;
    let requests = 0;
    const store = await openFake(t, (_, response) => {
      open += 1;
      requests += 1;
      response.on("close", () => {
        open -= 1;
      });
    });
    await assert.rejects(make(store), failsWith("ServiceUnavailable"));
    assert.ok(requests > 0);
    while (open > 0) await sleep(1);
  });

test("a read of Google that is hedged ends the request that loses", async (t) => {
  const lost = Promise.withResolvers<void>();
  let bodies = 0;
  const store = await openFake(
    t,
    (request, response) => {
      if (!isBody(request)) return sendFacts(response);
      bodies += 1;
      if (bodies > 1) return void response.end("ours");
      response.on("close", lost.resolve);
    },
    "30s",
  );
  assert.equal(Buffer.from((await store.get("k")) ?? []).toString(), "ours");
  await lost.promise;
  assert.equal(bodies, 2);
});

for (const [name, status, make] of [
  ["listing", 200, (store: ObjectStore) => store.exists("d")],
  ["read that fails", 403, (store: ObjectStore) => store.get("k")],
  ["write", 200, (store: ObjectStore) => store.put("k", Buffer.alloc(4))],
] as const)
  test(`an answer of Google to a ${name} that does not end is cut`, async (t) => {
    let ended = false;
    const store = await openFake(
      t,
      (_, response) => {
        response.writeHead(status, { "content-type": "application/json" });
        pour(response);
        response.on("close", () => {
          ended = true;
        });
      },
      "30s",
    );
    await assert.rejects(make(store));
    while (!ended) await sleep(1);
  });

test("a part of an object of Google with more bytes than were asked for fails", async (t) => {
  const store = await openFake(t, (request, response) =>
    isBody(request) ? response.end(Buffer.alloc(SIZE)) : sendFacts(response),
  );
  await assert.rejects(store.getRange("k", 2, 5), failsWith("ServiceUnavailable"));
});

test.concurrent("failures of Google that pass are not seen, also beside plain writes", async (t) => {
  const failed = new Set<string>();
  const store = await openFake(
    t,
    (request, response) => {
      const asked = `${request.method} ${request.url}`;
      if (failed.has(asked)) return sendFacts(response);
      failed.add(asked);
      response.writeHead(503).end();
    },
    "30s",
  );
  const [, , , , exists] = await Promise.all([
    store.put("k", Buffer.alloc(4)),
    store.copy("l", "m"),
    store.delete("n"),
    store.head("o"),
    store.exists("d"),
  ]);
  assert.equal(exists, false);
  assert.equal(failed.size, 6);
});

testRedirects("Google", openFake);
