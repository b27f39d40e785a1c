import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, onTestFinished, test } from "vitest";
import { callUnary, sendJson, type Upstream } from "../../../test/fixtures/upstreams/rest.ts";
import {
  backendDownload,
  countTableRows,
  describeTable,
  dropTable,
  failing,
  listAllTables,
  upstreamOf,
} from "../../../test/fixtures/upstreams/upstream.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";

/** An upstream below HTTP: what it writes for every connection. */
async function rawUpstream(text: string, more?: string): Promise<Upstream> {
  const server = createServer((socket) => {
    socket
      .on("error", () => {})
      .once("data", () => {
        if (more === undefined) return void socket.end(text);
        socket.write(text);
        const timer = setInterval(() => socket.write(more), 20);
        socket.on("close", () => clearInterval(timer));
      });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return upstreamOf(() => {}, {
    uri,
    ...(more !== undefined && { timeLimits: { firstByteMs: 300, idleMs: 300 } }),
  });
}

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

const broken: readonly [what: string, text: string, error: ErrorName][] = [
  ["nothing at all", "", "ServiceUnavailable"],
  ["no HTTP", "SSH-2.0-x\r\n", "ServiceUnavailable"],
  ["half a head", "HTTP/1.1 200 OK\r\ncontent-", "ServiceUnavailable"],
  ["less than its length", `${HEAD}content-length: 10\r\n\r\n{}`, "ServiceUnavailable"],
  ["a chunk that is cut off", `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\n{}`, "ServiceUnavailable"],
  ["chunks without an end", `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n`, "ServiceUnavailable"],
  ["no JSON", `${HEAD}content-length: 6\r\n\r\n<html>`, "ServiceUnavailable"],
  ["JSON that does not fit", `${HEAD}content-length: 14\r\n\r\n{"version":{}}`, "ServiceUnavailable"],
];

describe("answers that are none", () => {
  for (const [what, text, error] of broken) {
    test(what, async () => {
      await assert.rejects(callUnary(await rawUpstream(text), describeTable), failing(error));
    });
  }

  test("no body, where the answer to a read needs one: there are neither no rows nor no tables", async () => {
    for (const text of ["HTTP/1.1 200 OK\r\n\r\n", `${HEAD}content-length: 0\r\n\r\n`]) {
      for (const method of [countTableRows, listAllTables])
        await assert.rejects(callUnary(await rawUpstream(text), method), failing("ServiceUnavailable"));
      await callUnary(await rawUpstream(text), dropTable);
    }
  });

  test("no body, where the answer to a query needs a schema", async () => {
    for (const text of [`${HEAD}content-length: 0\r\n\r\n`, "HTTP/1.1 204 No Content\r\n\r\n"]) {
      await assert.rejects(async () => {
        for await (const _ of backendDownload(await rawUpstream(text)));
      }, failing("ServiceUnavailable"));
    }
  });

  test("null, where the answer to a read needs a value", async () => {
    const text = `${HEAD}content-length: 4\r\n\r\nnull`;
    const wrapped = `${HEAD}content-length: 14\r\n\r\n{"count":null}`;
    for (const method of [countTableRows, listAllTables])
      await assert.rejects(callUnary(await rawUpstream(text), method), failing("ServiceUnavailable"));
    await assert.rejects(
      callUnary(await rawUpstream(wrapped), countTableRows),
      failing("ServiceUnavailable"),
    );
    await callUnary(await rawUpstream(text), dropTable);
  });

  test("a connection that is refused, and a host that there is not, whose addresses stay here", async () => {
    for (const uri of ["http://127.0.0.1:1", "http://no-such-host.invalid"]) {
      const upstream = await upstreamOf(() => {}, { uri });
      await assert.rejects(callUnary(upstream, describeTable), failing("ServiceUnavailable", /^[^.:]*$/));
      assert.equal(await upstream.backend.ready(), false);
    }
  });

  test("heads and bodies that come without an end, a little at a time", async () => {
    const endless: readonly [first: string, more: string, error: ErrorName][] = [
      ["", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", "ServiceUnavailable"],
      ["HTTP/1.1 200 OK\r\n", "a: b\r\n", "DeadlineExceeded"],
      ["HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", " ", "DeadlineExceeded"],
      ["HTTP/1.1 404 Not Found\r\ncontent-length: 100000\r\n\r\n", " ", "DeadlineExceeded"],
    ];
    const ends = endless.map(async ([first, more, error]) => {
      const upstream = await rawUpstream(first, more);
      await assert.rejects(callUnary(upstream, describeTable), failing(error), more);
    });
    await Promise.all(ends);
  });

  test("an answer that is too large", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { location: "x".repeat(2000) }), {
      maxAnswerBytes: 1000,
    });
    await assert.rejects(callUnary(upstream, describeTable), failing("ServiceUnavailable", /larger/));
  });

  test("no head in time, no body in time, not all in time", async () => {
    const silent = await upstreamOf(() => {}, { timeLimits: { firstByteMs: 50 } });
    await assert.rejects(callUnary(silent, describeTable), failing("DeadlineExceeded"));
    const pausing = await upstreamOf((response) => response.writeHead(200).write("{"), {
      timeLimits: { idleMs: 50 },
    });
    await assert.rejects(callUnary(pausing, describeTable), failing("DeadlineExceeded"));
    const endless = await upstreamOf(() => {}, { timeLimits: { totalMs: 50 } });
    await assert.rejects(callUnary(endless, describeTable), failing("DeadlineExceeded"));
  });

  test("a client that goes away takes the upstream's request with it", async () => {
    const gone = Promise.withResolvers<void>();
    const controller = new AbortController();
    const reason = new LanceError("Cancelled", "the client disconnected");
    const upstream = await upstreamOf((response) => {
      response.on("close", () => gone.resolve());
      controller.abort(reason);
    });
    await assert.rejects(
      callUnary(upstream, describeTable, {}, { signal: controller.signal }),
      (error) => error === reason,
    );
    await gone.promise;
    await assert.rejects(
      callUnary(upstream, countTableRows, {}, { signal: controller.signal }),
      (error) => error === reason,
    );
    assert.equal(upstream.seen.length, 1);
  });
});
