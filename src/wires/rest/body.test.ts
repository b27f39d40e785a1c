import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { test } from "vitest";
import { isLanceError } from "../../namespace/errors.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { UNPACED } from "../../runtime/loop-pace.ts";
import { readPieces } from "./body.ts";
import type { Exchange } from "./exchange.ts";

const KIB = 1024;
const senderOf = () => "address 127.0.0.1";

/** Returns the exchange of an upload in an encoding. */
function uploadOf(encoding: string | undefined, body: Uint8Array): Exchange {
  const headers = { "content-length": String(body.length), "content-encoding": encoding };
  const request = Object.assign(Readable.from([body]), { headers, httpVersionMajor: 1 });
  return { request, done: false } as unknown as Exchange;
}

test("the decoder of an upload takes its memory from the hold, and as much as it keeps of its output", async () => {
  const bytes = Buffer.alloc(200 * KIB);
  for (const [encoding, body, least, most] of [
    [undefined, bytes, 0, 0],
    ["gzip", gzipSync(bytes), 64 * KIB, 100 * KIB],
    ["br", brotliCompressSync(bytes), bytes.length, 300 * KIB],
    ["zstd", zstdCompressSync(bytes), bytes.length, 500 * KIB],
  ] as const) {
    const hold = createByteBudget().open();
    let size = 0;
    for await (const piece of readPieces(uploadOf(encoding, body), { hold, senderOf, pace: UNPACED })) {
      size += piece.byteLength;
    }
    assert.equal(size, bytes.length);
    assert.ok(hold.bytes >= least && hold.bytes <= most, `${encoding}: ${hold.bytes}`);
  }
});

test("an upload is refused where its decoder finds no memory, whether it begins or goes on", async () => {
  const body = brotliCompressSync(Buffer.alloc(200 * KIB));
  for (const room of [50 * KIB, 150 * KIB]) {
    const others = createByteBudget(1_000 * KIB);
    others.open().take(1_000 * KIB - room);
    const pieces = readPieces(uploadOf("br", body), { hold: others.open(), senderOf, pace: UNPACED });
    await assert.rejects(
      async () => {
        for await (const _ of pieces);
      },
      (error) => isLanceError(error, "Throttling"),
    );
  }
});
