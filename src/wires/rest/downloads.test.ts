import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "vitest";
import { open, operations, piece, post, useRestServer } from "../../../test/fixtures/wires/rest.ts";
import { steady } from "../../../test/support/steady.ts";
import { LanceError } from "../../namespace/errors.ts";

useRestServer();

test("a download has the first message's content type and all bytes", async () => {
  operations.download = async function* (_request, call) {
    call.responseHeaders["x-version"] = "1";
    yield piece("ab");
    yield piece("cd");
  };
  const { headers, text } = await post("/v1/table/t/query", "{}");
  assert.equal(text, "abcd");
  assert.equal(headers["content-type"], "application/vnd.apache.arrow.file");
  assert.equal(headers["x-version"], "1");
});

test("a download that fails has its status before the first byte and no end after it", async () => {
  // biome-ignore lint/correctness/useYield: it fails before it has anything to yield.
  operations.download = async function* () {
    throw new LanceError("TableNotFound", "t");
  };
  assert.equal((await post("/v1/table/t/query", "{}")).status, 404);
  operations.download = async function* () {
    yield piece("ab");
    throw new LanceError("Internal", "lost");
  };
  await assert.rejects(post("/v1/table/t/query", "{}"), { code: "ECONNRESET" });
});

test("a download waits for its reader, and ends with it", async () => {
  let yielded = 0;
  const closed = new Promise<void>((resolve) => {
    operations.download = async function* () {
      try {
        for (; yielded < 1000; yielded++) yield { data: { data: Buffer.alloc(1_000_000) } };
      } finally {
        resolve();
      }
    };
  });
  const request = open("POST", "/v1/table/t/query");
  request.end("{}");
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const ahead = await steady(() => yielded);
  assert.ok(ahead < 100, `${ahead}`);
  response.destroy();
  await closed;
});

test("a download whose headers cannot be sent ends, so that it holds nothing any longer", async () => {
  const closed = new Promise<void>((resolve) => {
    operations.download = async function* (_request, call) {
      call.responseHeaders["x-broken"] = "a\nb";
      try {
        yield piece("ab");
      } finally {
        resolve();
      }
    };
  });
  assert.equal((await post("/v1/table/t/query", "{}")).status, 500);
  await closed;
});
