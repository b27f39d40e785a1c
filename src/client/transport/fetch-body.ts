import { LanceError } from "../../namespace/errors.ts";

/** Sends an HTTP request; the platform's own function, unless a program provides another. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Whether fetch can send a body while it is being produced: outside of browsers. */
const STREAMS_UPLOADS = "process" in globalThis || "Deno" in globalThis;

/** Returns a body in a form that fetch accepts. If the platform cannot stream bodies, it collects the body first. */
export async function fetchBody(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<Pick<RequestInit, "body" | "duplex">> {
  if (STREAMS_UPLOADS) return { body: toStream(body), duplex: "half" };
  return { body: await collectBody(body, signal) };
}

/** Bytes of a body that the memory of the page has, before the browser keeps them, which may put them on a disk. */
const JOINED_BYTES = 16 * 2 ** 20;

/**
 * Collects a body, of which the memory of the page has little at a time.
 *
 * @throws LanceError InvalidInput, if the browser has no room for it: a request would fail without a reason.
 */
export async function collectBody(body: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Blob> {
  const kept: Blob[] = [];
  let [joined, bytes]: [Uint8Array<ArrayBuffer>[], number] = [[], 0];
  for await (const piece of body) {
    signal.throwIfAborted();
    joined.push(piece as Uint8Array<ArrayBuffer>);
    bytes += piece.byteLength;
    if (bytes < JOINED_BYTES) continue;
    kept.push(new Blob(joined));
    [joined, bytes] = [[], 0];
  }
  const whole = new Blob([...kept, ...joined]);
  // The browser reports a lack of room only when the bytes are read.
  await whole
    .slice(-1)
    .arrayBuffer()
    .catch((cause: unknown) => {
      const size = `${Math.ceil(whole.size / 1e6)} MB`;
      const message = `the browser has no room for the ${size} of this upload; “lance-gateway import” needs none`;
      throw new LanceError("InvalidInput", message, { cause });
    });
  return whole;
}

/** A body of a request, and what its source has thrown. */
export interface WatchedBody {
  readonly pieces: AsyncIterable<Uint8Array>;
  readonly failure: unknown;
}

/** Watches the source of a body: fetch reports only that the request failed, and not what the source has thrown. */
export function watchBody(source: AsyncIterable<Uint8Array>): WatchedBody {
  let failure: unknown;
  async function* pieces(): AsyncIterable<Uint8Array> {
    try {
      yield* source;
    } catch (thrown) {
      failure = thrown;
      throw thrown;
    }
  }
  return {
    pieces: pieces(),
    get failure() {
      return failure;
    },
  };
}

/** Yields the body of an answer; leaving the loop early ends the exchange. */
export async function* answerPieces({ body }: Response): AsyncIterable<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  let over = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      over = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!over) await reader.cancel().catch(() => {});
  }
}

function toStream(body: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const next = await iterator.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
