import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "vitest";
import type { ObjectStore } from "../format/storage.ts";
import { startFake } from "./fixture.ts";

/** Opens a store on a fake service. */
export type OpenFake = (
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
) => Promise<ObjectStore>;

/** Size of the bodies, in bytes. */
export const SIZE = 2_000;

/** Begins a body, of whose bytes half are sent. */
export function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-length": String(SIZE) });
  response.write(Buffer.alloc(SIZE / 2));
}

/** Sends half a body, and then a byte at a time. */
function trickle(response: ServerResponse): void {
  begin(response);
  const timer = setInterval(() => response.write("x"), 20);
  response.on("close", () => clearInterval(timer));
}

/** Bodies that do not arrive. */
export const STALLS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "never begins": () => {},
  "stops in the middle": begin,
  trickles: trickle,
  "ends in the middle": (response) => {
    begin(response);
    setTimeout(() => response.destroy(), 20);
  },
};

/** Sends spaces as fast as the connection takes them, until it closes. */
export function pour(response: ServerResponse): void {
  const spaces = Buffer.alloc(2 ** 20, " ");
  const more = () => {
    while (!response.destroyed && response.write(spaces));
  };
  response.on("drain", more);
  more();
}

/** Reads an object as a stream, to its end. */
export async function drain(store: ObjectStore): Promise<void> {
  for await (const _ of (await store.getStream("k")) ?? []);
}

/** Reads an object as a stream with pauses longer than the limits of the tests, and returns the number of its bytes. */
export async function readSlowly(store: ObjectStore): Promise<number> {
  let bytes = 0;
  for await (const chunk of (await store.getStream("k")) ?? []) {
    await sleep(300);
    bytes += chunk.byteLength;
  }
  return bytes;
}

/** All ways to read the bytes of an object. */
export const READS: Readonly<Record<string, (store: ObjectStore) => Promise<unknown>>> = {
  get: (store) => store.get("k"),
  getTagged: (store) => store.getTagged("k"),
  getStream: drain,
  getTail: (store) => store.getTail("k", SIZE),
  getRange: (store) => store.getRange("k", 0, SIZE),
};

/** Tests that a store reads from no other address, and sends nothing there. */
export function testRedirects(service: string, openFake: OpenFake): void {
  for (const status of [301, 302, 303, 307, 308])
    test(`a redirect of ${service} with status ${status} is not followed`, async (t) => {
      let followed = 0;
      const other = await startFake(t, (_, response) => {
        followed += 1;
        response.end("theirs");
      });
      const place = other.replace("127.0.0.1", "localhost");
      const store = await openFake(t, (request, response) => {
        response.writeHead(status, { location: `${place}${request.url}` }).end();
      });
      for (const read of Object.values(READS)) await assert.rejects(read(store));
      await assert.rejects(store.put("k", Buffer.alloc(4)));
      await assert.rejects(store.exists("d"));
      assert.equal(followed, 0);
    });
}
