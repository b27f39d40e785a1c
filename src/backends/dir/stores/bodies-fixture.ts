import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "vitest";
import type { ObjectStore } from "../format/storage.ts";

/** Size of the bodies, in bytes. */
export const SIZE = 2_000;

/** Starts a fake service on loopback, and returns its origin. */
export async function startFake(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Begins a body, of whose bytes half are sent. */
export function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-length": String(SIZE) });
  response.write(Buffer.alloc(SIZE / 2));
}

/** Sends half a body, and then a byte at a time. */
export function trickle(response: ServerResponse): void {
  begin(response);
  const timer = setInterval(() => response.write("x"), 20);
  response.on("close", () => clearInterval(timer));
}

/** Reads an object as a stream, to its end. */
export async function drain(store: ObjectStore): Promise<void> {
  for await (const _ of (await store.getStream("k")) ?? []);
}

/** All ways to read the bytes of an object. */
export const READS: Readonly<Record<string, (store: ObjectStore) => Promise<unknown>>> = {
  get: (store) => store.get("k"),
  getTagged: (store) => store.getTagged("k"),
  getStream: drain,
  getTail: (store) => store.getTail("k", SIZE),
  getRange: (store) => store.getRange("k", 0, SIZE),
};
