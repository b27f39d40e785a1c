import assert from "node:assert/strict";
import { pino } from "pino";
import { afterEach, beforeEach, describe, it, vi } from "vitest";
import { guardServer, type TokenGrant } from "./bucket-server.ts";

const REQUEST = { bucket: "b", rate: { perSecond: 1, burst: 1 }, wanted: 1, returned: 0 };
const GRANT: TokenGrant = { granted: 1, waitMs: 0, fullMs: 0 };

function openGuard() {
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => lines.push(line) });
  const state = { failures: 0, answer: async (): Promise<TokenGrant> => GRANT };
  const onFailure = () => {
    state.failures += 1;
  };
  const guard = guardServer({ take: () => state.answer() }, { log, onFailure });
  const messages = () => lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  return { guard, state, messages };
}

describe("a guarded server", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "hrtime"] }));
  afterEach(() => void vi.useRealTimers());

  it("is left alone for a while after a failure, which is logged once and counted each time", async () => {
    const { guard, state, messages } = openGuard();
    assert.deepEqual(await guard.take(REQUEST), GRANT);
    assert.equal(guard.isAway, false);
    state.answer = () => Promise.reject(new Error("gone"));
    for (let round = 1; round <= 3; round++) {
      await assert.rejects(guard.take(REQUEST));
      assert.equal(guard.isAway, true);
      vi.advanceTimersByTime(1_000);
      assert.equal(guard.isAway, false);
      assert.equal(state.failures, round);
    }
    state.answer = async () => GRANT;
    await guard.take(REQUEST);
    assert.equal(guard.isAway, false);
    assert.match(messages().join("\n"), /^[^\n]*does not answer[^\n]*\n[^\n]*answers again$/);
  });

  it("is asked by one request after the pause", async () => {
    const { guard, state } = openGuard();
    state.answer = () => Promise.reject(new Error("gone"));
    await assert.rejects(guard.take(REQUEST));
    vi.advanceTimersByTime(1_000);
    const held = Promise.withResolvers<TokenGrant>();
    state.answer = () => held.promise;
    const probe = guard.take(REQUEST);
    assert.equal(guard.isAway, true);
    held.resolve(GRANT);
    await probe;
    assert.equal(guard.isAway, false);
  });

  it("fails a request whose answer does not come in time", async () => {
    const { guard, state } = openGuard();
    state.answer = () => new Promise(() => {});
    const late = assert.rejects(guard.take(REQUEST), /no answer in 100 ms/);
    vi.advanceTimersByTime(100);
    await late;
  });
});
