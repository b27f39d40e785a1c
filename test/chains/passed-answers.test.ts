import assert from "node:assert/strict";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import type { Interceptor } from "../../src/pipeline/call/interceptor.ts";
import { startUpstream, type Upstream } from "../fixtures/upstreams/rest.ts";
import { sendHttp } from "../support/http.ts";
import { startServer, type TestServer } from "../support/server.ts";

const log = pino({ level: "silent" });
const PLAIN = '{ "table": "t", "properties": {} }';
const REWRITTEN = '{"table":"t","properties":{}}';

describe("an answer of a REST upstream", () => {
  let upstream: Upstream;
  let gateway: TestServer;
  let answer: { text: string; headers?: Record<string, string> };

  beforeAll(async () => {
    upstream = await startUpstream((response) => {
      response.writeHead(200, { "content-type": "application/json", ...answer.headers }).end(answer.text);
    });
    gateway = await startServer(await createRestBackend({ uri: upstream.uri, log }));
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  async function describeThrough({ port }: TestServer, text: string, headers?: Record<string, string>) {
    answer = { text, ...(headers && { headers }) };
    const { status, bytes, ...rest } = await sendHttp(port, {
      method: "POST",
      path: "/v1/table/t/describe",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    return { status, text: Buffer.from(bytes).toString(), headers: rest.headers };
  }

  /** Calls through a gateway of its own. */
  async function throughOwn(
    options: Partial<Parameters<typeof createRestBackend>[0]>,
    interceptors: readonly Interceptor[] = [],
  ): Promise<string> {
    const backend = await createRestBackend({ uri: upstream.uri, log, ...options });
    const own = await startServer(backend, {}, { plugins: [{ interceptors }] });
    try {
      return (await describeThrough(own, PLAIN)).text;
    } finally {
      await own.close();
    }
  }

  test("goes to the client as it is where the gateway would write it alike", async () => {
    const { status, text, headers } = await describeThrough(gateway, PLAIN);
    assert.deepEqual([status, text, headers["content-type"]], [200, PLAIN, "application/json"]);
    assert.equal(headers["content-length"], String(PLAIN.length));
  });

  test("becomes a message where an interceptor may read it", async () => {
    const tables: unknown[] = [];
    const reads: Interceptor = async (call, request, next) => {
      const response = await next(call, request);
      tables.push((response as { table?: unknown }).table);
      return response;
    };
    assert.equal(await throughOwn({}, [reads]), REWRITTEN);
    assert.deepEqual(tables, ["t"]);
  });

  test("becomes a message where a cache keeps it", async () => {
    assert.equal(await throughOwn({ cache: { ttlMs: 60_000 } }), REWRITTEN);
  });

  test("becomes a message where its context repeats a header", async () => {
    const { text, headers } = await describeThrough(gateway, PLAIN, { etag: '"1"' });
    assert.deepEqual(JSON.parse(text).context, { "header.etag": '"1"' });
    assert.equal(headers["etag"], '"1"');
  });

  test("loses the headers in its context that clients must not get", async () => {
    const context = '{"properties":{},"context":{"header.set-cookie":"a=b","other":"kept"}}';
    const { text, headers } = await describeThrough(gateway, context);
    assert.deepEqual(JSON.parse(text).context, { other: "kept" });
    assert.equal(headers["set-cookie"], undefined);
  });

  test("is ServiceUnavailable as before where it is not JSON or does not fit", async () => {
    for (const text of ["{", '{"table":1,"properties":{}}', `${PLAIN} x`]) {
      assert.equal((await describeThrough(gateway, text)).status, 503, text);
    }
  });
});
