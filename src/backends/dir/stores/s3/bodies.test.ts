import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type TestContext, test, vi } from "vitest";
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
import { openFakeS3, startFake } from "../../../../../test/fixtures/dir/stores.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { createS3Store } from "./s3.ts";

/** Opens a store on a fake service. */
async function openFake(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  more: Record<string, string> = {},
): Promise<ObjectStore> {
  const aws_endpoint = await startFake(t, (request, response) => {
    request.resume();
    response.setHeader("etag", '"tag"');
    answer(request, response);
  });
  const keys = { aws_access_key_id: "id", aws_secret_access_key: "secret" };
  const rest = { allow_http: "true", timeout: "200ms", client_max_retries: "1", ...more };
  return (await createS3Store("bucket", { aws_endpoint, ...keys, ...rest })).store;
}

for (const [stall, send] of Object.entries(STALLS))
  for (const [name, read] of Object.entries(READS))
    for (const retries of ["0", "1"])
      test.concurrent(`${name} with ${retries} retries fails in time for a body of S3 that ${stall}, and frees its connection`, async (t) => {
        const closed = Promise.withResolvers<void>();
        const answer = (_: IncomingMessage, response: ServerResponse) => {
          response.on("close", closed.resolve);
          send(response);
        };
        const store = await openFake(t, answer, { client_max_retries: retries });
        await assert.rejects(read(store), failsWith("ServiceUnavailable"));
        await closed.promise;
      });

test("a slow reader does not fail a body of S3", async (t) => {
  const answer = (_: IncomingMessage, response: ServerResponse) => void response.end(Buffer.alloc(SIZE));
  const store = await openFake(t, answer, { timeout: LIMIT_OF_SLOW_READER });
  assert.equal(await readSlowly(store), SIZE);
  await drain(store);
});

/** Requests whose answers are short, with the start of an answer of success. */
const SHORT: Readonly<
  Record<string, readonly [start: string, make: (store: ObjectStore) => Promise<unknown>]>
> = {
  listing: ["<ListBucketResult>", (store) => store.exists("d")],
  copy: ["<CopyObjectResult>", (store) => store.copy("k", "l")],
  delete: ["", (store) => store.delete("k")],
  write: ["", (store) => store.put("k", Buffer.from("ours"))],
  "long write": ["", (store) => store.put("k", Buffer.alloc(2 ** 20 + 1))],
};

const isHead = ({ method }: IncomingMessage) => method === "HEAD";

for (const [name, [start, make]] of Object.entries(SHORT))
  test.concurrent(`the answer to a ${name} that trickles fails in time`, async (t) => {
    const store = await openFake(t, (request, response) => {
      if (isHead(request)) return void response.end();
      response.write(start);
      trickleOn(response);
    });
    await assert.rejects(make(store), failsWith("ServiceUnavailable"));
  });

for (const [name, [start, make]] of Object.entries(SHORT))
  for (const status of [200, 403])
    test(`an answer to a ${name} with status ${status} that does not end is cut, and the request is not repeated`, async (t) => {
      // A listing that takes long on a busy machine is not hedged.
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      t.onTestFinished(() => void vi.useRealTimers());
      const attempts: (string | string[] | undefined)[] = [];
      const ended = Promise.withResolvers<void>();
      const store = await openFake(
        t,
        (request, response) => {
          if (isHead(request)) return void response.end();
          attempts.push(request.headers["amz-sdk-request"]);
          response.on("close", ended.resolve);
          response.writeHead(status).write(start);
          pour(response);
        },
        { timeout: "30s" },
      );
      await assert.rejects(make(store), failsWith("ServiceUnavailable"));
      await ended.promise;
      assert.equal(attempts.length, 1, attempts.join(" and "));
    });

function trickleOn(response: ServerResponse): void {
  const timer = setInterval(() => response.write(" "), 20);
  response.on("close", () => clearInterval(timer));
}

testRedirects("S3", openFake);

const WITH_ERROR = "<Error><Code>InternalError</Code></Error>\n";

test("a success whose body is an error fails a copy and a long upload", async (t) => {
  const { store } = await openFakeS3(
    t,
    ({ method, url }) => {
      if (url.includes("uploads")) {
        return "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>";
      }
      return method === "HEAD" || url.includes("partNumber") ? [200] : WITH_ERROR;
    },
    { client_max_retries: "0" },
  );
  await assert.rejects(store.copy("k", "l"), failsWith("ServiceUnavailable"));
  async function* long() {
    yield Buffer.alloc(2 ** 24);
  }
  await assert.rejects(store.putStream("k", long()), failsWith("ServiceUnavailable"));
});

test("a part of an object from a service that ignores ranges is cut from the whole", async (t) => {
  const store = await openFake(t, (_, response) => void response.end("0123456789"), { timeout: "30s" });
  assert.equal(Buffer.from((await store.getRange("k", 2, 5)) ?? []).toString(), "234");
  const tail = await store.getTail("k", 3);
  assert.deepEqual([Buffer.from(tail?.bytes ?? []).toString(), tail?.size], ["789", 10]);
});

test("a part with more bytes than were asked for fails", async (t) => {
  const headers = { "content-range": "bytes 0-9/10" };
  const store = await openFake(t, (_, response) => void response.writeHead(206, headers).end("0123456789"));
  await assert.rejects(store.getRange("k", 2, 5), failsWith("ServiceUnavailable"));
});
