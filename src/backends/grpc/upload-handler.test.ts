import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { inMessageSizes, MESSAGE_BYTES } from "./upload-handler.ts";

describe("inMessageSizes", () => {
  it("keeps the bytes, and every piece but the last has the size", async () => {
    const sizes = fc.array(
      fc.oneof(fc.nat(2_000), fc.integer({ min: MESSAGE_BYTES - 2, max: 2 * MESSAGE_BYTES + 2 })),
      {
        maxLength: 6,
      },
    );
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        const body = lengths.map((length, index) => new Uint8Array(length).fill(index + 1));
        async function* pieces() {
          yield* body;
        }
        const out: Uint8Array[] = [];
        for await (const piece of inMessageSizes(pieces())) out.push(piece);
        assert.ok(Buffer.concat(out).equals(Buffer.concat(body)));
        assert.ok(out.slice(0, -1).every(({ length }) => length === MESSAGE_BYTES));
        assert.ok(out.every(({ length }) => length > 0 && length <= MESSAGE_BYTES));
      }),
      { numRuns: 30 },
    );
  });
});
