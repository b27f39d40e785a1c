import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "vitest";
import { bounded } from "./bounded-requests.ts";
import { startFake } from "./fixture.ts";

test("a library that reads an answer only after it has arrived misses none of it", async (t) => {
  const url = await startFake(t, (_, response) => response.end("whole"));
  const read = await bounded(undefined, 10_000, async () => {
    const [answer] = (await once(get(url), "response")) as [IncomingMessage];
    while (!answer.complete && answer.readableLength < 5) await turn();
    return text(answer);
  });
  assert.equal(read, "whole");
});
