import assert from "node:assert/strict";
import type { LookupFunction } from "node:net";
import { describe, test } from "vitest";
import { answer, failure, upstreamOf } from "../../../../test/fixtures/upstreams/plain-rest.ts";
import { until } from "../../../../test/support/until.ts";
import { LateSignal } from "../../../runtime/late-signal.ts";

/** A resolver that answers when the test says so. */
function heldLookup() {
  const held: (() => void)[] = [];
  const lookup: LookupFunction = (_host, options, done) => {
    held.push(() => {
      if (options.all) done(null, [{ address: "127.0.0.1", family: 4 }]);
      else done(null, "127.0.0.1", 4);
    });
  };
  return { held, lookup };
}

describe("a connection that takes long to open", () => {
  test("is not doubled for each caller that leaves meanwhile", async () => {
    const { held, lookup } = heldLookup();
    const options = { maxCalls: 2 };
    const { send, seen } = await upstreamOf((socket) => socket.write(answer("ok")), options, lookup);
    for (let round = 0; round < 20; round += 1) {
      const signal = new LateSignal();
      const sent = send({ signal });
      for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
      signal.abort(new Error("gone"));
      await assert.rejects(sent, /gone/);
    }
    assert.equal(held.length, 3, "the calls and a probe");
    const [first, second] = [send(), send()];
    for (const resolve of held) resolve();
    assert.deepEqual(await Promise.all([first, second]), ["200 ok", "200 ok"]);
    assert.equal(seen.requests.length, 2);
    assert.equal(held.length, 3);
  });

  test("leaves its place when it fails", async () => {
    const { held, lookup } = heldLookup();
    const options = { maxCalls: 1, timeLimits: { connectMs: 1_000 } };
    const { send } = await upstreamOf((socket) => socket.write(answer("ok")), options, lookup);
    for (let round = 0; round < 2; round += 1) {
      const signal = new LateSignal();
      const sent = send({ signal });
      await until(() => held.length === round + 1);
      signal.abort(new Error("gone"));
      await assert.rejects(sent, /gone/);
    }
    const sent = send();
    await until(() => held.length === 3);
    held[2]?.();
    assert.equal(await sent, "200 ok");
  });

  test("sends nothing once the transport is closed", async () => {
    const { held, lookup } = heldLookup();
    const { send, transport, seen } = await upstreamOf(() => {}, {}, lookup);
    const refused = assert.rejects(send(), failure("connect"));
    await until(() => held.length === 1);
    await transport.close();
    held[0]?.();
    await refused;
    assert.deepEqual(seen.requests, []);
  });

  test("is awaited by those who drain the transport", async () => {
    const { held, lookup } = heldLookup();
    const { send, transport } = await upstreamOf((socket) => socket.write(answer("ok")), {}, lookup);
    const sent = send();
    await until(() => held.length === 1);
    const drained = transport.drain();
    held[0]?.();
    assert.equal(await sent, "200 ok");
    await drained;
  });
});
