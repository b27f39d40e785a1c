import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, test } from "vitest";
import { QueryTableResponseSchema } from "../../src/gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../src/namespace/errors.ts";
import { people, personStream } from "../support/arrow.ts";
import { CallError, type ProtocolClient } from "../support/client.ts";
import { sendHttp } from "../support/http.ts";
import { createProtocolClients, PROTOCOLS } from "../support/protocols.ts";
import { fakeBackend, startServer, type TestServer } from "../support/server.ts";

const STREAM = "application/vnd.apache.arrow.stream";
const FILE = "application/vnd.apache.arrow.file";

const failures: Record<string, () => Error> = {
  "a-known-failure": () => new LanceError("ServiceUnavailable", "the storage went away"),
  "an-unknown-failure": () => new Error("secret: s3://bucket/key"),
};

const FIRST_BATCH = personStream(people(50_000)).subarray(0, 1_000_000);

/** Delays a failure until the test allows it, so that the earlier pieces have been sent. */
let beforeFailing: Promise<void> = Promise.resolve();

const backend = fakeBackend({
  async *queryTable(_, call) {
    const [when, failure = ""] = call.id;
    if (when === "after-the-first-batch") {
      yield create(QueryTableResponseSchema, { data: { contentType: STREAM, data: FIRST_BATCH } });
      await beforeFailing;
    }
    throw (failures[failure] as () => Error)();
  },
});

describe("a query that fails after its first batch", () => {
  let server: TestServer;
  let clients: Readonly<Record<string, ProtocolClient>>;
  beforeAll(async () => {
    server = await startServer(backend);
    clients = createProtocolClients(server.port);
  });
  afterAll(async () => {
    for (const client of Object.values(clients)) client.close();
    await server.close();
  });

  const expected = { "a-known-failure": [17, 14], "an-unknown-failure": [18, 13] } as const;
  for (const [failure, [code, grpcCode]] of Object.entries(expected)) {
    for (const protocol of Object.keys(PROTOCOLS).filter((name) => name !== "REST")) {
      test(`${protocol}: ${failure} ends the stream with its status`, async () => {
        const client = clients[protocol]?.client;
        for (const when of ["after-the-first-batch", "before-it"]) {
          const thrown = await client?.queryTable({ id: [when, failure] }).catch((error: unknown) => error);
          assert.ok(thrown instanceof CallError, `${when}: ${thrown}`);
          assert.deepEqual(thrown.failure, { code, grpcCode });
          assert.ok(!thrown.message.includes("secret"), thrown.message);
        }
      });
    }

    for (const accept of [STREAM, FILE]) {
      test(`REST: ${failure} breaks a body of ${accept} off`, async () => {
        const gate = Promise.withResolvers<void>();
        beforeFailing = gate.promise;
        const path = `/v1/table/after-the-first-batch$${failure}/query`;
        const outgoing = request({
          host: "127.0.0.1",
          port: server.port,
          method: "POST",
          path,
          headers: { accept },
        });
        outgoing.end("{}");
        const [response] = await once(outgoing, "response");
        assert.equal(response.statusCode, 200);
        response.once("data", () => gate.resolve());
        await assert.rejects(async () => {
          for await (const piece of response) assert.ok(piece);
        });
        assert.equal(response.complete, false);
      });

      test(`REST over HTTP/2: ${failure} resets a body of ${accept}`, async () => {
        const gate = Promise.withResolvers<void>();
        beforeFailing = gate.promise;
        const session = connect(`http://127.0.0.1:${server.port}`);
        const path = `/v1/table/after-the-first-batch$${failure}/query`;
        const stream = session.request({ ":method": "POST", ":path": path, accept });
        stream.end("{}");
        const [headers] = await once(stream, "response");
        assert.equal(headers[":status"], 200);
        stream.once("data", () => gate.resolve());
        await assert.rejects(async () => {
          for await (const piece of stream) assert.ok(piece);
        });
        assert.notEqual(stream.rstCode, 0);
        session.destroy();
      });
    }

    test(`REST: ${failure} before the first batch has a status`, async () => {
      const path = `/v1/table/before-it$${failure}/query`;
      const { status, bytes } = await sendHttp(server.port, { path, body: "{}" });
      assert.equal(status, code === 17 ? 503 : 500);
      assert.equal(JSON.parse(bytes.toString()).code, code);
      assert.ok(!bytes.includes("secret"));
    });
  }
});
