import assert from "node:assert/strict";
import { subscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { ListNamespacesResponseSchema } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";

/** Longer than every limit of undici's own, the longest of which is 300 s. */
const LONG_MS = 1_000_000;

/** The clock by which undici counts its limits. */
const clock = createRequire(import.meta.url)("undici/lib/util/timers.js") as { tick(ms: number): void };

const ANSWER = toBinary(
  ListNamespacesResponseSchema,
  create(ListNamespacesResponseSchema, { namespaces: ["a"] }),
);
/** Each has a form that undici reads. */
const ANSWERS: Readonly<Record<string, readonly [headers: OutgoingHttpHeaders, body: Uint8Array]>> = {
  rest: [
    { "content-type": "application/json", "transfer-encoding": "chunked" },
    Buffer.from('{"namespaces":["a"]}'),
  ],
  connect: [{ "content-type": "application/proto", "content-length": ANSWER.byteLength }, ANSWER],
};

/** Lets time go by for undici, whose timers begin with the next tick. */
function waitLong(): void {
  clock.tick(1_000);
  clock.tick(LONG_MS);
}

describe("a client without a time limit", () => {
  for (const [name, [headers, body]] of Object.entries(ANSWERS)) {
    test(`waits by ${name} for as long as an answer takes`, async (t) => {
      const server = createServer().listen(0, "127.0.0.1");
      t.onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      const namespace = await connect(name, { uri: `http://127.0.0.1:${port}` });
      const answer = namespace.listNamespaces({ id: [] });
      answer.catch(() => {});
      const [request, response] = (await once(server, "request")) as [NodeJS.ReadableStream, ServerResponse];
      request.resume();
      waitLong();
      const begun = new Promise((resolve) => subscribe("undici:request:headers", resolve));
      response.writeHead(200, headers);
      response.write(body.subarray(0, 1));
      await begun;
      waitLong();
      response.end(body.subarray(1));
      assert.deepEqual((await answer).namespaces, ["a"]);
      await namespace.close();
    });
  }
});
