import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { onTestFinished, test } from "vitest";
import { noteAnswer, noteRequest } from "./pipelining.ts";

const COUNT = 20_000;
const REQUEST = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";

test("a client that sends thousands of requests at once has few under way, and gets an answer to each", async () => {
  const held: ServerResponse[] = [];
  let isHolding = true;
  const server = createServer(({ socket, url }, response) => {
    if (url === "/probe") return void response.end();
    noteRequest(socket);
    response.on("close", () => noteAnswer(socket));
    response.req.resume();
    if (isHolding) held.push(response);
    else response.end("answer");
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect(port, "127.0.0.1");
  onTestFinished(() => void client.destroy());
  let text = "";
  client.setEncoding("latin1").on("data", (piece) => {
    text += piece;
  });
  client.write(REQUEST.repeat(COUNT));
  // The server reads a piece of each connection in a turn.
  for (let turns = 0; turns < 50; turns++) await fetch(`http://127.0.0.1:${port}/probe`);
  assert.ok(held.length > 0 && held.length < COUNT / 4, `${held.length} at once`);
  isHolding = false;
  for (const response of held) response.end("answer");
  while (text.split("answer").length - 1 < COUNT) await once(client, "data");
});
