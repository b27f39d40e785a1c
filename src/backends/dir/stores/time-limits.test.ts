import assert from "node:assert/strict";
import { once } from "node:events";
import { Readable } from "node:stream";
import { test } from "vitest";
import { failsWith } from "../../../../test/fixtures/dir/directory-backend.ts";
import { createTimeLimits, pacedBody, readPaced } from "./time-limits.ts";

const MIB = 2 ** 20;

test("small requests have short limits, which grow with their bytes and with each attempt", () => {
  const { small, write, conditionalWrite } = createTimeLimits(30_000);
  assert.equal(small, 10_000);
  assert.deepEqual([write(0), write(2 * MIB)], [10_000, 18_389]);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((attempts) => conditionalWrite(0, attempts)),
    [2_000, 4_000, 8_000, 16_000, 30_000],
  );
  assert.equal(conditionalWrite(MIB, 0), 6_195);
});

test("no limit exceeds the one that was set", () => {
  const { small, write, conditionalWrite } = createTimeLimits(200);
  assert.deepEqual([small, write(MIB), conditionalWrite(MIB, 3)], [200, 200, 200]);
});

test("a body is read up to its limit, and ended beyond", async () => {
  const bodyOf = () => Readable.from([Buffer.alloc(5), Buffer.alloc(5), Buffer.alloc(5)]);
  assert.equal((await readPaced(bodyOf(), 30_000, 15)).byteLength, 15);
  const long = bodyOf();
  await assert.rejects(readPaced(long, 30_000, 14), failsWith("ServiceUnavailable"));
  assert.equal(long.destroyed, true);
});

test("a body that closes before its end fails", async () => {
  const body = new Readable({ read() {} });
  const bytes = readPaced(body, 30_000);
  body.push("a");
  body.destroy();
  await assert.rejects(bytes, { code: "ECONNRESET" });
});

test("a body that closed before it was read fails", async () => {
  const body = new Readable({ read() {} }).destroy();
  await once(body, "close");
  await assert.rejects(readPaced(body, 1), { code: "ETIMEDOUT" });
});

test("a body that fails before its reader begins fails the reader, and not the process", async () => {
  const body = new Readable({ read() {} });
  const bytes = pacedBody(body, 30_000);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  body.on("close", resolve);
  body.destroy(new Error("cut"));
  await closed;
  await assert.rejects(Array.fromAsync(bytes), /cut/);
});
