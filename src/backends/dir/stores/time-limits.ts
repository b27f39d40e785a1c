import type { Readable } from "node:stream";
import { LanceError } from "../../../namespace/errors.ts";

/** Longest time until the answer to a read or a small write begins, in milliseconds. */
const SMALL_REQUEST_MS = 10_000;

/** Longest duration of the first attempt of a conditional write, in milliseconds; it doubles with each one. */
const CONDITIONAL_WRITE_MS = 2_000;

/** Rate of the slowest supported link, in bytes per millisecond. */
const BYTES_PER_MS = 250;

/** Returns the longest transfer time of a number of bytes, in milliseconds. */
export function transferMs(bytes: number): number {
  return bytes / BYTES_PER_MS;
}

/** Returns the error of a request that exceeded its limit. */
export function lateError(): Error {
  return Object.assign(new Error("late"), { code: "ETIMEDOUT" });
}

/** Time limits of the requests to a bucket, in milliseconds. */
export interface TimeLimits {
  /** Limit that bounds all others, and that on a wait for the next bytes of a body. */
  readonly longest: number;
  /** Limit on an attempt of a request without a long body. */
  readonly small: number;
  /** Returns the limit on an attempt to write a number of bytes. */
  write(bytes: number): number;
  /** Returns the limit on an attempt of a conditional write, by its bytes and the number of earlier attempts. */
  conditionalWrite(bytes: number, attempts: number): number;
}

/** @param longest the limit that bounds all others, in milliseconds */
export function createTimeLimits(longest: number): TimeLimits {
  const atMost = (ms: number) => Math.min(longest, Math.ceil(ms));
  return {
    longest,
    small: atMost(SMALL_REQUEST_MS),
    write: (bytes) => atMost(SMALL_REQUEST_MS + transferMs(bytes)),
    conditionalWrite: (bytes, attempts) => atMost(CONDITIONAL_WRITE_MS * 2 ** attempts + transferMs(bytes)),
  };
}

/** Size up to which an object is read whole, in bytes; longer ones are streamed. */
const MAX_WHOLE_BYTES = 512 * 2 ** 20;

/** Maximum size of an answer that is not an object, in bytes. A page of 1,000 keys of 1 KiB, all escaped, has 7 MB. */
export const MAX_ANSWER_BYTES = 16 * 2 ** 20;

/**
 * Passes a body on as it arrives. A body that stops, or trickles, is destroyed and fails: no wait for bytes may exceed
 * the limit, and all of them together may exceed it only by the time that the bytes take on the slowest supported link.
 * The time between two reads does not count.
 *
 * @param limit in milliseconds
 * @throws an error with the code `ETIMEDOUT`
 */
export function pacedBody(body: Readable, limit: number): AsyncGenerator<Uint8Array, undefined> {
  // The iterator listens from its first step on, and an error without a listener would end the process.
  body.on("error", () => {});
  return chunksOf(body, limit);
}

async function* chunksOf(body: Readable, limit: number): AsyncGenerator<Uint8Array, undefined> {
  const chunks: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  let bytes = 0;
  let waited = 0;
  try {
    for (;;) {
      const start = performance.now();
      const left = Math.min(limit, limit + transferMs(bytes) - waited);
      const timer = setTimeout(() => body.destroy(lateError()), left);
      const next = await chunks.next().finally(() => clearTimeout(timer));
      if (next.done) return;
      waited += performance.now() - start;
      bytes += next.value.byteLength;
      yield next.value;
    }
  } finally {
    body.destroy();
  }
}

/**
 * Reads a body to its end, with the limits of {@link pacedBody}; by its events, which takes a fraction of the time of
 * an iterator.
 *
 * @param maxBytes size beyond which the body is destroyed and fails. Default: that of objects that are read whole
 * @throws an error with the code `ETIMEDOUT` or `ECONNRESET`; LanceError ServiceUnavailable for a longer body
 */
export function readPaced(body: Readable, limit: number, maxBytes = MAX_WHOLE_BYTES): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const start = performance.now();
    let latest = start;
    let bytes = 0;
    let timer = setTimeout(look, limit);
    function look(): void {
      const left = Math.min(latest, start + transferMs(bytes)) + limit - performance.now();
      if (left > 0) timer = setTimeout(look, left);
      else fail(lateError());
    }
    function fail(error: Error): void {
      clearTimeout(timer);
      body.destroy();
      reject(error);
    }
    body.on("data", (chunk: Buffer) => {
      latest = performance.now();
      bytes += chunk.byteLength;
      if (bytes > maxBytes) return fail(tooLong());
      chunks.push(chunk);
    });
    body.once("end", () => {
      clearTimeout(timer);
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    });
    body.on("error", fail);
    body.once("close", () => fail(Object.assign(new Error("cut"), { code: "ECONNRESET" })));
  });
}

/** Returns the error of an answer that no attempt would make shorter. */
export function tooLong(): LanceError {
  return new LanceError("ServiceUnavailable", "catalog storage returned more data than requested");
}
