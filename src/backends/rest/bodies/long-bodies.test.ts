import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer as createPlain, type RequestListener, type Server } from "node:http";
import { createServer as createSecure } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type Message } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, test } from "vitest";
import { callOf } from "../../../../test/fixtures/upstreams/rest.ts";
import { makeCertificates } from "../../../../test/support/certificates.ts";
import { collect } from "../../../../test/support/collect.ts";
import { createRandom, type Random } from "../../../../test/support/random.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../../namespace/call/call.ts";
import { createRestBackend } from "../index.ts";

const { queryTable, insertIntoTable } = LanceNamespaceService.method;
const MIB = 1024 * 1024;
const BODY = randomBytes(12 * MIB);
const DIGEST = digestOf([BODY]);

/** Pieces of the body, in memory of their own, most of them as large as a socket reads and some very small. */
function* piecesOf(random: Random): Iterable<Buffer> {
  for (let at = 0; at < BODY.byteLength; ) {
    const size = 1 + random.below(random.pick([10, 3_000, 65_536, 300_000]));
    yield Buffer.from(Uint8Array.from(BODY.subarray(at, at + size)).buffer);
    at += size;
  }
}

function digestOf(pieces: Iterable<Uint8Array>): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

const CONNECTIONS = {
  "a plain connection": async (listener: RequestListener) => ({ server: createPlain(listener), tls: {} }),
  "a connection with TLS": async (listener: RequestListener) => {
    const { ca, server } = await makeCertificates();
    return { server: createSecure(server, listener), tls: { tls: { ca } } };
  },
};

for (const [name, connect] of Object.entries(CONNECTIONS)) {
  describe(`long bodies over ${name}, whose memory is taken back behind them`, () => {
    async function withUpstream(
      listener: RequestListener,
      work: (operations: Awaited<ReturnType<typeof createRestBackend>>["operations"]) => Promise<void>,
    ): Promise<void> {
      const { server, tls }: { server: Server; tls: object } = await connect(listener);
      await once(server.listen(0, "127.0.0.1"), "listening");
      const scheme = "tls" in tls ? "https" : "http";
      const uri = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const backend = await createRestBackend({ uri, log: pino({ level: "silent" }), ...tls });
      try {
        await work(backend.operations);
      } finally {
        await backend.close();
        server.closeAllConnections();
        server.close();
      }
    }

    /** Reads a result as a wire does, and gives its digest and how many of the pieces lost their memory. */
    async function download(releasesChunks: boolean): Promise<{ digest: string; freed: number }> {
      const random = createRandom(7);
      const hash = createHash("sha256");
      const seen: Uint8Array[] = [];
      const answer: RequestListener = async (request, response) => {
        request.resume();
        response.writeHead(200, { "content-type": "application/vnd.apache.arrow.stream" });
        for (const piece of piecesOf(random)) if (!response.write(piece)) await once(response, "drain");
        response.end();
      };
      await withUpstream(answer, async (operations) => {
        const query = operations.queryTable as unknown as (
          request: Message,
          call: Call,
        ) => AsyncIterable<{ data: { data: Uint8Array } }>;
        for await (const { data } of query(
          create(queryTable.input),
          callOf(queryTable, { releasesChunks }),
        )) {
          // The system has a piece only some time after it was written.
          if (random.below(20) === 0) await sleep(1);
          hash.update(data.data);
          seen.push(data.data);
        }
      });
      return {
        digest: hash.digest("hex"),
        freed: seen.filter(({ buffer }) => (buffer as ArrayBuffer).detached).length,
      };
    }

    test("a result arrives as it was sent", async () => {
      const { digest, freed } = await download(true);
      assert.equal(digest, DIGEST);
      assert.ok(freed > 20, `${freed} pieces were freed`);
    });

    test("a result stays where its reader keeps it", async () => {
      assert.deepEqual(await download(false), { digest: DIGEST, freed: 0 });
    });

    test("an upload in very small pieces keeps none of them", async () => {
      const listener: RequestListener = (request, response) => {
        const headers = { "content-type": "application/json" };
        request.resume().on("end", () => response.writeHead(200, headers).end('{"version":2}'));
      };
      const seen: WeakRef<Uint8Array>[] = [];
      let alive = 0;
      async function* body(): AsyncIterable<Uint8Array> {
        for (let count = 0; count < 5_000; count += 1) {
          const piece = new Uint8Array(10);
          seen.push(new WeakRef(piece));
          yield piece;
        }
        // A reference that was read in a turn of the event loop lasts until its end.
        await sleep(10);
        collect();
        alive = seen.filter((piece) => piece.deref() !== undefined).length;
      }
      await withUpstream(listener, async (operations) => {
        const call = callOf(insertIntoTable, { ownsBody: true });
        await operations.insertIntoTable?.(create(insertIntoTable.input), body(), call);
      });
      assert.ok(alive < 500, `${alive} pieces were kept`);
    });

    for (const ownsBody of [true, false]) {
      test(`an upload ${ownsBody ? "of the call's own" : "that is somebody's"} arrives as it was sent`, async () => {
        const hash = createHash("sha256");
        const listener: RequestListener = async (request, response) => {
          for await (const piece of request) {
            hash.update(piece);
            // A server that is slow at times, so that much is on its way.
            if ((piece as Buffer).byteLength % 50 === 0) await sleep(2);
          }
          response.writeHead(200, { "content-type": "application/json" }).end('{"version":2}');
        };
        const sent = [...piecesOf(createRandom(8))];
        async function* body(): AsyncIterable<Uint8Array> {
          yield* sent;
        }
        await withUpstream(listener, async (operations) => {
          const call = callOf(insertIntoTable, { ownsBody });
          await operations.insertIntoTable?.(create(insertIntoTable.input), body(), call);
        });
        assert.equal(hash.digest("hex"), DIGEST);
        const kept = sent.reduce((total, { byteLength }) => total + byteLength, 0);
        if (ownsBody) assert.ok(kept < 2 * MIB, `${kept} bytes were kept`);
        else assert.equal(digestOf(sent), DIGEST);
      });
    }
  });
}
