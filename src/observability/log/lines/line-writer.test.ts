import assert from "node:assert/strict";
import { describe, it, vi } from "vitest";
import { createLineWriter } from "./line-writer.ts";

type Write = (bytes: Buffer, offset: number) => Promise<number>;

/** Returns a writer whose target takes bytes by the given steps, and then everything. */
function writerTo(steps: readonly Write[], timeoutMs?: number) {
  const left = [...steps];
  const taken: string[] = [];
  const target = {
    async prepare() {},
    async write(bytes: Buffer, offset: number) {
      const count = await (left.shift()?.(bytes, offset) ?? bytes.length - offset);
      taken.push(bytes.toString("utf8", offset, offset + count));
      return count;
    },
    async close() {},
  };
  return { writer: createLineWriter(target, timeoutMs), text: () => taken.join("") };
}

const fail = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));

describe("the writer of lines", () => {
  it("goes on after a part, and after a pipe that is full for a moment", async () => {
    const { writer, text } = writerTo([async () => 3, fail("EAGAIN"), async () => 1]);
    await writer.append(Buffer.from("first\nsecond\n"));
    assert.equal(text(), "first\nsecond\n");
  });

  it("ends a line that broke off before it writes the next", async () => {
    const { writer, text } = writerTo([async () => 3, fail("ENOSPC")]);
    await assert.rejects(writer.append(Buffer.from("first\n")), /ENOSPC/);
    await writer.append(Buffer.from("second\n"));
    assert.equal(text(), "fir\nsecond\n");
  });

  it("adds no empty line after one that was whole", async () => {
    const { writer, text } = writerTo([async () => 6, fail("ENOSPC")]);
    await assert.rejects(writer.append(Buffer.from("first\nsecond\n")), /ENOSPC/);
    await writer.append(Buffer.from("third\n"));
    assert.equal(text(), "first\nthird\n");
  });

  it("fails when the system takes nothing, at once while that lasts, and works again afterwards", async () => {
    const { promise: stuck, resolve: release } = Promise.withResolvers<number>();
    const { writer, text } = writerTo([() => stuck], 1);
    await assert.rejects(writer.append(Buffer.from("first\n")), /within 1 ms/);
    await assert.rejects(writer.append(Buffer.from("second\n")), /has not ended/);
    release(6);
    await vi.waitFor(() => writer.append(Buffer.from("third\n")), { timeout: 60_000 });
    assert.equal(text(), "first\nthird\n");
  });
});
