import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { ObjectStore } from "../format/storage.ts";

/** Size of the bodies, in bytes. */
export const SIZE = 2_000;

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
