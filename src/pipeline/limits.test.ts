import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isLanceError } from "../namespace/errors.ts";
import { createByteBudget } from "./limits.ts";

async function* chunks(...sizes: readonly number[]) {
  for (const size of sizes) yield new Uint8Array(size);
}

async function drain(data: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of data) bytes += chunk.byteLength;
  return bytes;
}

describe("createByteBudget", () => {
  it("passes a body of exactly the limit and refuses one more byte", async () => {
    const budget = createByteBudget({ maxUploadBytes: 10, maxBufferedBytes: 100 });
    assert.equal(await drain(budget.admit(chunks(4, 6)).data), 10);
    await assert.rejects(drain(budget.admit(chunks(4, 7)).data), (error) =>
      isLanceError(error, "PayloadTooLarge"),
    );
  });

  it("throttles when the running calls together hold too much, and recovers when one ends", async () => {
    const budget = createByteBudget({ maxUploadBytes: 10, maxBufferedBytes: 12 });
    const first = budget.admit(chunks(8));
    await drain(first.data);
    const second = budget.admit(chunks(8));
    await assert.rejects(drain(second.data), (error) => isLanceError(error, "Throttling"));
    second.release();
    first.release();
    assert.equal(budget.held, 0);
    assert.equal(await drain(budget.admit(chunks(8)).data), 8);
  });

  it("releases once, however often it is told", async () => {
    const budget = createByteBudget({ maxUploadBytes: 10, maxBufferedBytes: 10 });
    const call = budget.admit(chunks(5));
    await drain(call.data);
    call.release();
    call.release();
    assert.equal(budget.held, 0);
  });
});
