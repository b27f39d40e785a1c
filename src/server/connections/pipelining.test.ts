import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { rawConnection, startServer } from "../../../test/fixtures/server/server.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";

const MIB = 1024 * 1024;
const COUNT = 20_000;
const REQUESTS = "POST /v1/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}".repeat(COUNT);

test("a client that sends thousands of requests at once is read as far as it is answered", async () => {
  const held: ServerResponse[] = [];
  let isHolding = true;
  await using server = await startServer({
    rest(_request, response) {
      if (isHolding) held.push(response);
      else response.end("answer");
    },
  });
  const { socket, received } = rawConnection(server.port);
  socket.write(REQUESTS);
  // The server reads a piece of each connection in a turn.
  for (let turns = 0; turns < 50; turns++) await fetch(`${server.url}/healthz`);
  const read = server.figures().received;
  assert.ok(read < REQUESTS.length / 4, `${read} bytes were read`);
  // Others wait for the event loop behind those that have begun.
  assert.equal(held.length, 16);
  isHolding = false;
  for (const response of held) response.end("answer");
  let [answers, end] = [0, 0];
  while (answers < COUNT) {
    const at = received().indexOf("answer", end);
    if (at === -1) await once(socket, "data");
    else [answers, end] = [answers + 1, at + 1];
  }
  socket.destroy();
});

test("requests that wait for others of their connection count for the memory of answers, and their connection ends", async () => {
  const unsentBudget = createByteBudget(MIB);
  await using server = await startServer({ rest: () => {}, unsentBudget });
  const { socket, closed } = rawConnection(server.port);
  socket.write(REQUESTS);
  await closed;
  await expect.poll(() => unsentBudget.held).toBe(0);
});
