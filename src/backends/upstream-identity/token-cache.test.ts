import assert from "node:assert/strict";
import { test } from "vitest";
import { LanceError } from "../../namespace/errors.ts";
import { allocateCells, openCells } from "../../runtime/threads/keyed-cells.ts";
import { PAUSES_SHAPE } from "./refused-fetches.ts";
import { createTokenCache, type Token, type TokenPauses } from "./token-cache.ts";

/**
 * Returns a cache whose clock the test controls and whose tokens are numbered; a fetch ends when the test says so.
 */
function cacheOf(lifeMs: number, maxTokens = 10, pauses: TokenPauses = {}) {
  let now = 1_000_000;
  const fetches: PromiseWithResolvers<Token>[] = [];
  const cache = createTokenCache({
    ...pauses,
    fetch() {
      const fetched = Promise.withResolvers<Token>();
      fetches.push(fetched);
      return fetched.promise;
    },
    renewBeforeMs: 60_000,
    maxTokens,
    scopeOf: (error) => (String(error).includes("unreachable") ? "provider" : "subject"),
    now: () => now,
  });
  const issue = (index: number) =>
    fetches[index]?.resolve({ value: `token ${index}`, expiresAt: now + lifeMs });
  return {
    cache,
    fetches,
    pass: (milliseconds: number) => (now += milliseconds),
    issue,
    /** Fetches the token of a subject, which no call has requested yet. */
    async hold(subject = "s") {
      const token = cache.get(subject);
      issue(fetches.length - 1);
      await token;
    },
    /** Requests a token whose fetch fails. */
    async fail(message: string, subject = "s", error: Error = new Error(message)) {
      const token = cache.get(subject);
      fetches.at(-1)?.reject(error);
      await assert.rejects(Promise.resolve(token), new RegExp(message));
    },
  };
}

test("many that wait share one fetch, and those after them find the token at once", async () => {
  const { cache, fetches, issue } = cacheOf(600_000);
  const waiting = Array.from({ length: 50 }, () => cache.get("s"));
  issue(0);
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(["token 0"]));
  assert.equal(cache.get("s"), "token 0");
  assert.equal(fetches.length, 1);
});

test("a token is renewed before its end, by one, while the others go on with it", async () => {
  const { cache, fetches, issue, pass, hold } = cacheOf(600_000);
  await hold();
  pass(539_999);
  assert.equal(cache.get("s"), "token 0");
  pass(2);
  const renewing = cache.get("s");
  assert.equal(cache.get("s"), "token 0");
  issue(1);
  assert.equal(await renewing, "token 1");
  assert.equal(cache.get("s"), "token 1");
  assert.equal(fetches.length, 2);
});

test("a short token is renewed in the last tenth of its life", async () => {
  const { cache, pass, hold } = cacheOf(10_000);
  await hold();
  pass(8_999);
  assert.equal(cache.get("s"), "token 0");
  pass(2);
  assert.ok(cache.get("s") instanceof Promise);
});

test("a failed renewal does no harm until the token ends", async () => {
  const { cache, fetches, pass, hold, fail } = cacheOf(600_000);
  await hold();
  pass(550_000);
  const renewing = cache.get("s");
  fetches[1]?.reject(new Error("down"));
  assert.equal(await renewing, "token 0");
  pass(60_000);
  await fail("still down");
});

test("repeats a failure for a time that doubles, until a success", async () => {
  const { cache, fetches, issue, pass, fail } = cacheOf(600_000);
  for (const [index, pause] of [1_000, 2_000, 4_000].entries()) {
    await fail("down");
    pass(pause - 1);
    await assert.rejects(Promise.resolve(cache.get("s")), /down/);
    assert.equal(fetches.length, index + 1);
    pass(1);
  }
  const back = cache.get("s");
  issue(3);
  assert.equal(await back, "token 3");
});

test("repeats a failure of the provider to every subject, and a failure of a subject to it alone", async () => {
  const { cache, fetches, issue, pass, fail } = cacheOf(600_000);
  await fail("refused", "bad");
  const good = cache.get("good");
  issue(1);
  assert.equal(await good, "token 1");
  await fail("unreachable", "other");
  await assert.rejects(Promise.resolve(cache.get("third")), /unreachable/);
  assert.equal(cache.get("good"), "token 1");
  assert.equal(fetches.length, 3);
  pass(1_000);
  const third = cache.get("third");
  issue(3);
  assert.equal(await third, "token 3");
});

test("a renewal that failed is not tried again for every call", async () => {
  const { cache, fetches, pass, hold } = cacheOf(600_000);
  await hold();
  pass(550_000);
  const renewing = cache.get("s");
  fetches[1]?.reject(new Error("down"));
  assert.equal(await renewing, "token 0");
  for (let call = 0; call < 10; call += 1) assert.equal(cache.get("s"), "token 0");
  assert.equal(fetches.length, 2);
});

test("tokens that are refused one after the other are replaced more and more seldom", async () => {
  const { cache, fetches, issue, pass } = cacheOf(600_000);
  let calls = 0;
  for (let second = 0; second < 120; second += 1) {
    const found = cache.get("s");
    if (typeof found !== "string") issue(calls++);
    cache.refuse("s", await found);
    pass(1_000);
  }
  assert.equal(fetches.length, 7);
});

test("subjects without a token push out no token", async () => {
  const { cache, hold, fail } = cacheOf(600_000, 2);
  await hold("good");
  for (let index = 1; index <= 50; index += 1) {
    await fail("refused", `made up ${index}`);
  }
  assert.equal(cache.get("good"), "token 0");
  assert.equal(cache.size, 1);
});

test("a token that comes after failures is kept", async () => {
  const { cache, issue, pass, fail } = cacheOf(600_000);
  await fail("down");
  assert.equal(cache.size, 0);
  pass(1_000);
  const second = cache.get("s");
  issue(1);
  assert.equal(await second, "token 1");
});

test("a refused token is replaced once, and not when it has just been issued", async () => {
  const { cache, fetches, issue, pass, hold } = cacheOf(600_000);
  await hold();
  assert.equal(cache.refuse("s", "token 0"), false);
  pass(1_000);
  assert.equal(cache.refuse("s", "token 0"), true);
  const again = [cache.get("s"), cache.get("s")];
  issue(1);
  assert.deepEqual(await Promise.all(again), ["token 1", "token 1"]);
  // A caller that was refused with the old token only has to take the new one.
  assert.equal(cache.refuse("s", "token 0"), true);
  assert.equal(cache.get("s"), "token 1");
  assert.equal(fetches.length, 2);
});

test("no more tokens are kept than allowed", async () => {
  const { cache, hold } = cacheOf(600_000, 2);
  for (const subject of ["a", "b", "c"]) {
    await hold(subject);
  }
  assert.equal(cache.size, 2);
  assert.equal(cache.get("c"), "token 2");
  assert.ok(cache.get("a") instanceof Promise);
});

/** Returns caches of two workers, which share their pauses. */
function cachesOf(...owners: readonly [string, string]) {
  const memory = allocateCells(PAUSES_SHAPE, 2);
  const [first, second] = owners.map((owner, worker) =>
    cacheOf(600_000, 10, { owner, cells: openCells(PAUSES_SHAPE, { worker, workers: 2 }, memory) }),
  );
  return [first, second] as [ReturnType<typeof cacheOf>, ReturnType<typeof cacheOf>];
}

const errorOf = (token: string | Promise<string>) =>
  Promise.resolve(token).then(
    () => undefined,
    (error: unknown) => (error instanceof LanceError ? [error.kind, error.headers["retry-after"]] : error),
  );

test("a failure in a worker pauses the others, with an error of its kind", async () => {
  const [first, second] = cachesOf("a", "a");
  await first.fail("refused", "bad", new LanceError("Unauthenticated", "refused"));
  await first.fail("unreachable", "other", new LanceError("ServiceUnavailable", "unreachable"));
  assert.deepEqual(await errorOf(second.cache.get("third")), ["ServiceUnavailable", "1"]);
  for (const each of [first, second]) each.pass(500);
  assert.deepEqual(await errorOf(first.cache.get("fourth")), ["ServiceUnavailable", "1"]);
  for (const each of [first, second]) each.pass(500);
  await second.fail("unreachable", "third", new LanceError("ServiceUnavailable", "unreachable"));
  // The pause doubles after failures in different workers.
  assert.deepEqual(await errorOf(first.cache.get("third")), ["ServiceUnavailable", "2"]);
  assert.deepEqual([first.fetches.length, second.fetches.length], [2, 1]);
});

test("a subject that a worker has failed for is refused by the others, and no other subject is", async () => {
  const [first, second] = cachesOf("a", "a");
  await first.fail("refused", "bad", new LanceError("Unauthenticated", "refused"));
  assert.deepEqual(await errorOf(second.cache.get("bad")), ["Unauthenticated", undefined]);
  assert.equal(second.fetches.length, 0);
  await second.hold("good");
  assert.equal(second.cache.get("good"), "token 0");
});

test("a success in a worker ends the pauses that it disproves in all of them", async () => {
  const [first, second] = cachesOf("a", "a");
  await first.fail("unreachable", "s", new LanceError("ServiceUnavailable", "unreachable"));
  for (const each of [first, second]) each.pass(1_000);
  await second.hold("s");
  // A first pause again, not one that has doubled.
  await first.fail("unreachable", "t", new LanceError("ServiceUnavailable", "unreachable"));
  assert.deepEqual(await errorOf(second.cache.get("u")), ["ServiceUnavailable", "1"]);
});

test("a failure with other credentials of the gateway pauses nobody else", async () => {
  const [first, second] = cachesOf("a", "b");
  await first.fail("unreachable", "s", new LanceError("ServiceUnavailable", "unreachable"));
  await second.hold("s");
  assert.equal(second.cache.get("s"), "token 0");
});

test("a clock that is set back neither prolongs a pause nor keeps a refused token", async () => {
  const hour = 3_600_000;
  const { cache, fetches, issue, pass, fail, hold } = cacheOf(600_000);
  await fail("unreachable");
  pass(-3 * hour);
  const token = cache.get("s");
  assert.equal(fetches.length, 2);
  issue(1);
  assert.equal(await token, "token 1");
  await hold("other");
  pass(-3 * hour);
  assert.equal(cache.refuse("other", "token 2"), true);
  const next = cache.get("other");
  issue(3);
  assert.equal(await next, "token 3");
});
