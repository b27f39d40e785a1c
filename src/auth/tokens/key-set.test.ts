import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { errors } from "jose";
import { pino } from "pino";
import { afterEach, beforeAll, beforeEach, describe, it, type TestContext, vi } from "vitest";
import { type SigningKey, shownKeys, signingKey } from "../../../test/fixtures/auth/tokens.ts";
import { isLanceError, type LanceError } from "../../namespace/errors.ts";
import { createKeySet, fetchIssuerKeys, type KeySetOptions } from "./key-set.ts";

const [MINUTE, HOUR] = [60_000, 3_600_000];
const log = pino({ level: "silent" });
const setOf = (fetch: KeySetOptions["fetch"]) => createKeySet({ issuer: "https://issuer", fetch, log });
const header = (kid: string) => ({ alg: "ES256", kid });
const isUnknown = (error: unknown) => error instanceof errors.JWKSNoMatchingKey;
const isAway = (error: unknown) => isLanceError(error, "ServiceUnavailable");

describe("the keys of an issuer", () => {
  let [first, second]: [SigningKey?, SigningKey?] = [];
  beforeAll(async () => {
    [first, second] = await Promise.all([signingKey("first"), signingKey("second")]);
  });
  beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
  afterEach(() => void vi.useRealTimers());
  const [a, b] = [() => first as SigningKey, () => second as SigningKey];

  it("are fetched once for all calls that wait", async () => {
    const shown = shownKeys(a());
    const set = setOf(() => shown.fetch());
    await Promise.all(Array.from({ length: 20 }, () => set.find(header("first"))));
    assert.equal(shown.fetches, 1);
  });

  it("are fetched a few times, however many unknown names tokens have", async () => {
    const shown = shownKeys(a());
    const set = setOf(() => shown.fetch());
    await set.find(header("first"));
    for (let minute = 0; minute < 2; minute += 1) {
      const unknown = Array.from({ length: 1_000 }, (_, at) => set.find(header(`${minute}-${at}`)));
      const outcomes = await Promise.allSettled(unknown);
      assert.ok(outcomes.every((outcome) => outcome.status === "rejected" && isUnknown(outcome.reason)));
      vi.advanceTimersByTime(MINUTE);
    }
    assert.equal(shown.fetches, 3);
  });

  it("follow a rotation as soon as a token names the new key", async () => {
    const shown = shownKeys(a());
    const set = setOf(() => shown.fetch());
    await set.find(header("first"));
    shown.keys = [a(), b()];
    await Promise.all(Array.from({ length: 20 }, () => set.find(header("second"))));
    await set.find(header("first"));
    assert.equal(shown.fetches, 2);
  });

  it("lose a key that the issuer has withdrawn, without a call that waits", async () => {
    const shown = shownKeys(a(), b());
    const set = setOf(() => shown.fetch());
    await set.find(header("first"));
    const before = set.current();
    vi.advanceTimersByTime(4 * MINUTE);
    assert.equal(set.current(), before);
    shown.keys = [b()];
    vi.advanceTimersByTime(MINUTE);
    assert.equal(set.current(), before);
    await vi.waitFor(() => assert.notEqual(set.current(), before), { timeout: 60_000 });
    await assert.rejects(set.find(header("first")), isUnknown);
  });

  it("stay for an hour while the issuer is away, and then no token can be checked", async () => {
    const shown = shownKeys(a());
    let isUp = true;
    const set = setOf(async () => {
      if (isUp) return shown.fetch();
      throw new Error("no route to host");
    });
    await set.find(header("first"));
    isUp = false;
    vi.advanceTimersByTime(HOUR - MINUTE);
    await set.find(header("first"));
    vi.advanceTimersByTime(MINUTE);
    await assert.rejects(set.find(header("first")), isAway);
    isUp = true;
    vi.advanceTimersByTime(MINUTE);
    await set.find(header("first"));
  });

  it("are not asked for again and again while the issuer fails, and callers learn how long", async () => {
    let fetches = 0;
    const set = setOf(async () => {
      fetches += 1;
      throw new Error("no route to host");
    });
    const outcome = () => set.find(header("first")).catch((error: LanceError) => error);
    const pauses: string[] = [];
    for (let attempt = 0; attempt < 9; attempt += 1) {
      const failure = (await outcome()) as LanceError;
      assert.ok(isAway(failure), String(failure));
      pauses.push(failure.headers["retry-after"] ?? "");
      await Promise.all(Array.from({ length: 50 }, outcome));
      vi.advanceTimersByTime(Number(pauses.at(-1)) * 1_000);
    }
    assert.deepEqual(pauses, ["1", "2", "4", "8", "16", "32", "60", "60", "60"]);
    assert.equal(fetches, 9);
  });

  it("hold a bounded number of calls while the issuer is silent", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const shown = shownKeys(a());
    const set = setOf(() => promise);
    const waiting = Array.from({ length: 1_000 }, () => set.find(header("first")));
    await assert.rejects(set.find(header("first")), isAway);
    resolve(await shown.fetch());
    await Promise.all(waiting);
  });

  for (const [what, answer] of [
    ["an answer that is a list", []],
    ["a set without a list", { keys: {} }],
    ["more than a hundred keys", { keys: Array.from({ length: 101 }, () => ({})) }],
    ["a key that is no object", { keys: [1] }],
  ] as const) {
    it(`are not taken from ${what}`, async () => {
      await assert.rejects(setOf(async () => answer).find(header("first")), isAway);
    });
  }
});

type Answer = (response: ServerResponse, origin: string) => void;

const DOCUMENT = "/.well-known/openid-configuration";
const json =
  (value: (origin: string) => unknown): Answer =>
  (response, origin) =>
    response.end(JSON.stringify(value(origin)));
const document = (changes: object = {}) =>
  json((issuer) => ({ issuer, jwks_uri: `${issuer}/keys`, ...changes }));

/** Starts an issuer that answers each path in its own way, and returns its address and the requests that it gets. */
async function startIssuer({ onTestFinished }: TestContext, answers: Readonly<Record<string, Answer>>) {
  const asked: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    asked.push(url);
    const answer = answers[url];
    if (answer === undefined) response.writeHead(404).end();
    else answer(response, origin);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, asked };
}

describe("the keys of an issuer at its address", () => {
  it("are found by the discovery document", async (context) => {
    const keys = { keys: [] };
    const answers = { [DOCUMENT]: document(), "/keys": json(() => keys) };
    const { origin, asked } = await startIssuer(context, answers);
    assert.deepEqual(await fetchIssuerKeys({ issuer: origin }), keys);
    assert.deepEqual(asked, [DOCUMENT, "/keys"]);
  });

  it("are fetched from the configured address, without a discovery document", async (context) => {
    const { origin, asked } = await startIssuer(context, { "/k": json(() => ({ keys: [] })) });
    await fetchIssuerKeys({ issuer: "https://login.example.com", jwksUri: `${origin}/k` });
    assert.deepEqual(asked, ["/k"]);
  });

  it("are not waited for when they never end", async (context) => {
    const answers: Record<string, Answer> = { "/keys": (response) => response.write('{"keys": [') };
    const { origin } = await startIssuer(context, answers);
    const settings = async () => ({ timeoutMs: 50 });
    const fetching = fetchIssuerKeys({ issuer: origin, jwksUri: `${origin}/keys`, settings });
    await assert.rejects(fetching, /abort|timeout/i);
  });

  const megabytes = JSON.stringify({ keys: [], pad: "x".repeat(4 * 2 ** 20) });
  const wrong: Readonly<Record<string, readonly [Readonly<Record<string, Answer>>, RegExp, string[]]>> = {
    "a document of another issuer": [
      { [DOCUMENT]: document({ issuer: "https://other.example.com" }) },
      /another issuer/,
      [DOCUMENT],
    ],
    "a document that redirects": [
      {
        [DOCUMENT]: (response) => response.writeHead(302, { location: "/moved" }).end(),
        "/moved": document(),
      },
      /fetch failed/,
      [DOCUMENT],
    ],
    "keys that redirect": [
      {
        [DOCUMENT]: document(),
        "/keys": (response) => response.writeHead(307, { location: "/moved" }).end(),
        "/moved": json(() => ({ keys: [] })),
      },
      /fetch failed/,
      [DOCUMENT, "/keys"],
    ],
    "a document without keys": [{ [DOCUMENT]: document({ jwks_uri: undefined }) }, /no jwks_uri/, [DOCUMENT]],
    "keys at an address without TLS": [
      { [DOCUMENT]: document({ jwks_uri: "http://169.254.169.254/keys" }) },
      /without TLS/,
      [DOCUMENT],
    ],
    "keys in a file": [
      { [DOCUMENT]: document({ jwks_uri: "file:///etc/passwd" }) },
      /without TLS/,
      [DOCUMENT],
    ],
    "keys of megabytes": [
      { [DOCUMENT]: document(), "/keys": (response) => response.end(megabytes) },
      /larger than/,
      [DOCUMENT, "/keys"],
    ],
    "keys that unpack to megabytes": [
      {
        [DOCUMENT]: document(),
        "/keys": (response) => {
          response.writeHead(200, { "content-encoding": "gzip" });
          response.end(gzipSync(megabytes));
        },
      },
      /larger than/,
      [DOCUMENT, "/keys"],
    ],
    "keys that are no JSON": [
      { [DOCUMENT]: document(), "/keys": (response) => response.end("<html>") },
      /JSON/,
      [DOCUMENT, "/keys"],
    ],
    "keys that are missing": [{ [DOCUMENT]: document() }, /answers 404/, [DOCUMENT, "/keys"]],
  };
  for (const [what, [answers, message, requests]] of Object.entries(wrong)) {
    it(`are refused: ${what}`, async (context) => {
      const { origin, asked } = await startIssuer(context, answers);
      await assert.rejects(fetchIssuerKeys({ issuer: origin }), message);
      assert.deepEqual(asked, requests);
    });
  }
});
