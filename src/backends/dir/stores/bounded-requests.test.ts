import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "vitest";
import { startFake } from "../../../../test/fixtures/dir/stores.ts";
import { bounded, boundedForAll } from "./bounded-requests.ts";

test("a library that reads an answer only after it has arrived misses none of it", async (t) => {
  const url = await startFake(t, (_, response) => response.end("whole"));
  const read = await boundedForAll(10_000, async () => {
    const [answer] = (await once(get(url), "response")) as [IncomingMessage];
    while (!answer.complete && answer.readableLength < 5) await turn();
    return text(answer);
  });
  assert.equal(read, "whole");
});

for (const host of ["::1", "[::1]"])
  test(`a request to ${host} ends with its call, whose service is an IPv6 address`, async (t) => {
    const closed = Promise.withResolvers<void>();
    const url = await startFake(t, (_, response) => void response.on("close", closed.resolve));
    const createConnection = () => connect(Number(new URL(url).port), "127.0.0.1");
    const ask = () => once(get({ host, createConnection }), "response");
    const service = new URL("http://[::1]:9000").hostname;
    await assert.rejects(bounded({ host: service, limit: 50 }, ask), { code: "ETIMEDOUT" });
    await closed.promise;
  });

test("a request that other calls share goes on when the call that began it fails", async (t) => {
  const asked = Promise.withResolvers<ServerResponse>();
  const url = await startFake(t, (_, response) => asked.resolve(response));
  let shared: Promise<unknown[]> | undefined;
  const first = boundedForAll(30_000, async () => {
    shared = once(get(url), "response");
    await asked.promise;
    throw new Error("refused");
  });
  await assert.rejects(first, /refused/);
  (await asked.promise).end("whole");
  const [answer] = (await shared) as [IncomingMessage];
  assert.equal(await text(answer), "whole");
});
