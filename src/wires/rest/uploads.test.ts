import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { gzipSync } from "node:zlib";
import { test } from "vitest";
import { open, operations, post, server, useRestServer } from "../../../test/fixtures/wires/rest.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";

useRestServer();

test("an upload is handed on in pieces, decoded, with its content type", async () => {
  operations.upload = async (request, data) => {
    let size = 0n;
    for await (const piece of data) size += BigInt(piece.length);
    return { location: (request["data"] as { contentType: string }).contentType, version: size };
  };
  const big = Buffer.alloc(1_000_000, 1);
  const plain = await post("/v1/table/t/create", big, { "content-type": "application/x" });
  assert.deepEqual(JSON.parse(plain.text), { location: "application/x", version: 1_000_000, properties: {} });
  const packed = await post("/v1/table/t/create", gzipSync(big), { "content-encoding": "gzip" });
  assert.equal(JSON.parse(packed.text).version, 1_000_000);
  assert.equal(JSON.parse((await post("/v1/table/t/create", "", {})).text).version, 0);
});

test("an upload that is refused unread is answered, before it ends and after", async () => {
  operations.upload = async () => {
    throw new LanceError("TableAlreadyExists", "there");
  };
  const { status } = await post("/v1/table/t/create", Buffer.alloc(20_000_000));
  assert.equal(status, 409);
  const request = open("POST", "/v1/table/t/create", {
    "transfer-encoding": "chunked",
    expect: "100-continue",
  });
  request.on("error", () => {});
  request.flushHeaders();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 409);
  request.destroy();
});

test("a reader that stops early leaves the answer whole", async () => {
  operations.upload = async (_request, data) => {
    for await (const _piece of data) throw new LanceError("InvalidInput", "bad Arrow");
    return {};
  };
  assert.equal((await post("/v1/table/t/create", Buffer.alloc(20_000_000))).status, 400);
  const packed = gzipSync(Buffer.alloc(20_000_000));
  assert.equal((await post("/v1/table/t/create", packed, { "content-encoding": "gzip" })).status, 400);
});

test("a compressed upload that breaks after its reader has stopped is answered by the reader", async () => {
  const [stopped, broken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  operations.upload = async (_request, data) => {
    for await (const _piece of data) break;
    stopped.resolve();
    await broken.promise;
    throw new LanceError("InvalidInput", "bad Arrow");
  };
  const arrival = once(server, "request");
  const request = open("POST", "/v1/table/t/create", { "content-encoding": "gzip" });
  request.on("error", () => {});
  const answer = once(request, "response");
  // The end of a member is 8 bytes: without it, more has to follow.
  request.write(gzipSync("some rows").subarray(0, -8));
  const [received] = (await arrival) as [IncomingMessage];
  await stopped.promise;
  // The request stops when its decoder has failed.
  const failed = once(received, "pause");
  request.write(Buffer.alloc(64, 0xff));
  await failed;
  broken.resolve();
  const [response] = (await answer) as [IncomingMessage];
  assert.equal(response.statusCode, 400);
  request.destroy();
});

test("a client that leaves during an upload cancels it", async () => {
  const begun = Promise.withResolvers<void>();
  const failure = new Promise((resolve) => {
    operations.upload = async (_request, data) => {
      try {
        for await (const _piece of data) begun.resolve();
      } catch (thrown) {
        resolve(thrown);
      }
      return {};
    };
  });
  const request = open("POST", "/v1/table/t/create", { "content-length": "100000" });
  request.on("error", () => {});
  request.write("some");
  await begun.promise;
  request.destroy();
  assert.ok(isLanceError(await failure, "Cancelled"));
});
