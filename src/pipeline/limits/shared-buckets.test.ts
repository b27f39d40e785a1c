import assert from "node:assert/strict";
import { pino } from "pino";
import { afterEach, beforeEach, describe, it, vi } from "vitest";
import type { Rate, TokenBuckets } from "./rate-limit.ts";
import {
  createSharedBuckets,
  type GuardedServer,
  guardServer,
  type TokenGrant,
  type TokenRequest,
} from "./shared-buckets.ts";

/** A server whose clock moves when it is set, and gateways that share its buckets. */
function openServer(rate: Rate) {
  const clock = { now: 0 };
  const full = new Map<string, number>();
  const requests: TokenRequest[] = [];
  const state = { isAway: false, fails: false };
  const server: GuardedServer = {
    get isAway() {
      return state.isAway;
    },
    async take(request) {
      requests.push(request);
      if (state.fails) throw new Error("gone");
      const token = 1_000 / rate.perSecond;
      const { bucket, wanted, returned } = request;
      const before = Math.max(clock.now, (full.get(bucket) ?? 0) - returned * token);
      const free = Math.floor((clock.now + rate.burst * token - before) / token + 1e-6);
      const granted = Math.max(0, Math.min(wanted, free));
      const after = before + granted * token;
      full.set(bucket, after);
      const waitMs = Math.max(0, after + (1 - rate.burst) * token - clock.now);
      return { granted, waitMs, fullMs: after - clock.now };
    },
  };
  const local: TokenBuckets = { take: () => 77 };
  const gateway = () => createSharedBuckets({ server, name: "limit", rate, local, now: () => clock.now });
  return { clock, requests, state, gateway };
}

async function takeAll(buckets: TokenBuckets, times: number, key = "ann"): Promise<number> {
  let passed = 0;
  for (let call = 0; call < times; call++) if ((await buckets.take(key)) === 0) passed += 1;
  return passed;
}

describe("shared buckets", () => {
  it("let gateways together pass what a single one would", async () => {
    const { gateway, clock } = openServer({ perSecond: 100, burst: 50 });
    const [one, two] = [gateway(), gateway()];
    // Tokens that one has taken in advance are missing in the other.
    const assertFull = (passed: number) => assert.ok(passed <= 50 && passed >= 40, String(passed));
    assertFull((await takeAll(one, 40)) + (await takeAll(two, 40)));
    clock.now += 1_000;
    assertFull((await takeAll(two, 80)) + (await takeAll(one, 80)));
  });

  it("ask the server seldom for a key that is used again and again", async () => {
    const { gateway, requests } = openServer({ perSecond: 1_000, burst: 1_000 });
    assert.equal(await takeAll(gateway(), 1_000), 1_000);
    assert.ok(requests.length < 20, String(requests.length));
  });

  it("give back what a pause leaves", async () => {
    const { gateway, clock, requests } = openServer({ perSecond: 100, burst: 100 });
    const [one, two] = [gateway(), gateway()];
    assert.equal(await takeAll(one, 60), 60);
    clock.now += 150;
    assert.equal(await takeAll(one, 1), 1);
    assert.ok(requests.some(({ returned }) => returned > 0));
    assert.equal(await takeAll(two, 100), 100 - 61 + 15);
  });

  it("take nothing in advance for callers that come seldom", async () => {
    const { gateway, clock } = openServer({ perSecond: 10, burst: 100 });
    const gateways = Array.from({ length: 5 }, gateway);
    for (let round = 0; round < 100; round++) {
      clock.now += 500;
      for (const each of gateways) assert.equal(await each.take("ann"), 0);
    }
  });

  it("ask the server once for calls at the same time, and for as many tokens as they need", async () => {
    const { gateway, requests } = openServer({ perSecond: 1, burst: 5 });
    const buckets = gateway();
    const answers = await Promise.all(Array.from({ length: 8 }, () => buckets.take("ann")));
    assert.equal(answers.filter((ms) => ms === 0).length, 5);
    assert.ok(requests.length <= 2, String(requests.length));
  });

  it("do not ask again about a bucket that is known to be empty", async () => {
    const { gateway, requests, clock } = openServer({ perSecond: 1, burst: 1 });
    const buckets = gateway();
    assert.equal(await takeAll(buckets, 100), 1);
    const asked = requests.length;
    assert.equal(await takeAll(buckets, 100), 0);
    assert.equal(requests.length, asked);
    clock.now += 1_000;
    assert.equal(await takeAll(buckets, 1), 1);
  });

  it("name no caller to the server", async () => {
    const { gateway, requests } = openServer({ perSecond: 1, burst: 2 });
    const buckets = gateway();
    await takeAll(buckets, 1, "api-key ann");
    await takeAll(buckets, 1, "api-key bob");
    const [ann = "", bob = ""] = requests.map(({ bucket }) => bucket);
    assert.match(ann, /^limit:[\w-]{43}$/);
    assert.notEqual(ann, bob);
  });

  it("count locally while the server fails or is left alone", async () => {
    const { gateway, state, requests } = openServer({ perSecond: 100, burst: 100 });
    const buckets = gateway();
    state.fails = true;
    assert.equal(await buckets.take("ann"), 77);
    state.isAway = true;
    assert.equal(await buckets.take("ann"), 77);
    assert.equal(requests.length, 1);
    Object.assign(state, { isAway: false, fails: false });
    assert.equal(await buckets.take("ann"), 0);
  });

  it("spend no token long after it was taken", async () => {
    const { gateway, clock } = openServer({ perSecond: 100, burst: 100 });
    const [one, two] = [gateway(), gateway()];
    await takeAll(one, 8);
    clock.now += 10_000;
    assert.equal(await takeAll(two, 200), 100);
    assert.equal(await takeAll(one, 10), 0);
  });
});

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
