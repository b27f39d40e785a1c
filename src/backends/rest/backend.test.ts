import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { afterAll, describe, test, vi } from "vitest";
import { steady } from "../../../test/support/steady.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import { type Answer, callOf, callUnary, sendJson, startUpstream, type Upstream } from "./fixture.ts";
import { createRestBackend } from "./index.ts";
import type { RestBackendOptions } from "./options.ts";

const {
  describeTable,
  tableExists,
  countTableRows,
  getTableStats,
  listAllTables,
  queryTable,
  insertIntoTable,
  dropTable,
} = LanceNamespaceService.method;

const open: Upstream[] = [];
const raw: Server[] = [];
afterAll(async () => {
  for (const server of raw) server.close();
  await Promise.all(open.map((upstream) => upstream.close()));
});

async function upstreamOf(answer: Answer, options?: Partial<RestBackendOptions>): Promise<Upstream> {
  const upstream = await startUpstream(answer, options);
  open.push(upstream);
  return upstream;
}

const failing = (name: ErrorName, text?: RegExp) => (error: unknown) => {
  assert.ok(error instanceof LanceError, String(error));
  assert.equal(error.entry.name, name, error.message);
  if (text !== undefined) assert.match(error.message, text);
  return true;
};

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
  raw.push(server);
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
    const reason = new LanceError("Cancelled", "the client has gone");
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

type Download = (
  request: unknown,
  call: Call,
) => AsyncIterable<{ data?: { data: Uint8Array; contentType: string } }>;

function download(upstream: Upstream, overrides: Partial<Call> = {}) {
  const handler = upstream.backend.operations.queryTable as unknown as Download;
  return handler(create(queryTable.input), callOf(queryTable, overrides));
}

describe("bodies", () => {
  test("a download is asked for as the client takes it, and told as what it is", async () => {
    const upstream = await upstreamOf((response) => response.end("ARROW1 and more"));
    const types: (string | undefined)[] = [];
    for (const overrides of [{}, { protocol: "grpc" as const }]) {
      for await (const { data } of download(upstream, overrides)) types.push(data?.contentType);
    }
    assert.deepEqual(
      upstream.seen.map(({ headers }) => headers.accept),
      ["application/vnd.apache.arrow.file", "application/vnd.apache.arrow.stream"],
    );
    assert.deepEqual(types, ["application/vnd.apache.arrow.file", "application/vnd.apache.arrow.file"]);
  });

  test("a download that is cut off fails, whatever has come", async () => {
    const upstream = await upstreamOf((response) => {
      response.writeHead(200, { "content-length": 100 }).write("x".repeat(50), () => response.destroy());
    });
    await assert.rejects(async () => {
      for await (const _ of download(upstream));
    }, failing("ServiceUnavailable"));
  });

  test("a download that is refused has its error", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { code: 4, error: "t" }, 404));
    await assert.rejects(async () => {
      for await (const _ of download(upstream));
    }, failing("TableNotFound"));
  });

  test("a reader that does not read holds the upstream back, and one that leaves ends it", async () => {
    const closed = Promise.withResolvers<number>();
    let sent = 0;
    const upstream = await upstreamOf(async (response) => {
      response.on("close", () => closed.resolve(sent));
      response.writeHead(200, { "content-type": "application/vnd.apache.arrow.stream" });
      while (!response.destroyed && sent < 2 ** 28) {
        sent += 2 ** 20;
        if (!response.write(Buffer.alloc(2 ** 20)))
          await Promise.race([once(response, "drain"), closed.promise]);
      }
    });
    for await (const _ of download(upstream)) {
      await steady(() => sent);
      break;
    }
    assert.ok((await closed.promise) < 2 ** 26, `${sent} bytes were sent ahead`);
  });

  test("an upload passes as it comes, and what has gone is released", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, { version: 2 }));
    let released = 0;
    async function* pieces() {
      for (const piece of ["one,", "two,", "three"]) yield Buffer.from(piece);
    }
    const call = callOf(insertIntoTable, { releaseBody: (bytes) => (released += bytes) });
    const request = create(insertIntoTable.input, { mode: 2, branch: "b" });
    const answer = await upstream.backend.operations.insertIntoTable?.(request, pieces(), call);
    assert.equal(answer?.version, 2n);
    const [{ body, url, headers } = { body: "", url: "", headers: {} }] = upstream.seen;
    assert.equal(body, "one,two,three");
    assert.equal(url, "/v1/table/n%24t/insert?delimiter=%24&branch=b&mode=overwrite");
    assert.equal(headers["content-type"], "application/vnd.apache.arrow.stream");
    assert.equal(released, body.length);
  });

  test("an upload that breaks off does not arrive as a whole one", async () => {
    const upstream = await upstreamOf((response) => sendJson(response, {}));
    const broken = new LanceError("PayloadTooLarge", "too large");
    async function* pieces() {
      yield Buffer.from("one");
      throw broken;
    }
    const call = callOf(insertIntoTable);
    const inserted = upstream.backend.operations.insertIntoTable?.(
      create(insertIntoTable.input),
      pieces(),
      call,
    );
    await assert.rejects(inserted as Promise<unknown>, (error) => error === broken);
    assert.equal(upstream.seen.length, 0);
  });
});

test("only requests that tell all they need are forwarded beyond the contract", async () => {
  const upstream = await upstreamOf(() => {});
  assert.deepEqual(Object.keys(upstream.backend.extensions ?? {}).sort(), [
    "abortMultipartWrite",
    "addColumnsFromSchema",
    "completeMultipartWrite",
    "createMultipartWrite",
    "prewarmData",
    "prewarmIndex",
  ]);
  const methods: readonly DescMethod[] = LanceNamespaceService.methods;
  assert.equal(Object.keys(upstream.backend.operations).length, methods.length);
});
