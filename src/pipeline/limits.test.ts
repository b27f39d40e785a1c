import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createByteBudget } from "../namespace/byte-budget.ts";
import { isLanceError } from "../namespace/errors.ts";
import { admitBody } from "./limits.ts";

async function* chunks(...sizes: readonly number[]) {
  for (const size of sizes) yield new Uint8Array(size);
}

async function drain(data: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of data) bytes += chunk.byteLength;
  return bytes;
}

describe("admitBody", () => {
  const maxUploadBytes = 10;

  it("passes a body of exactly the limit and refuses one more byte", async () => {
    const hold = createByteBudget().open();
    assert.equal(await drain(admitBody(chunks(4, 6), hold, maxUploadBytes)), 10);
    await assert.rejects(drain(admitBody(chunks(4, 7), hold, maxUploadBytes)), (error) =>
      isLanceError(error, "PayloadTooLarge"),
    );
  });

  it("takes the bytes of a chunk before it passes the chunk on", async () => {
    const budget = createByteBudget(6);
    const hold = budget.open();
    const body = admitBody(chunks(4, 4), hold, maxUploadBytes);
    await body.next();
    assert.equal(budget.held, 4);
    await assert.rejects(body.next(), (error) => isLanceError(error, "Throttling"));
    hold.release();
    assert.equal(budget.held, 0);
  });
});
