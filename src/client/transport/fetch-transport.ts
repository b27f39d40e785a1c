import {
  type FailureKind,
  UpstreamFailure,
  type UpstreamTransport,
} from "../../backends/rest/transport/transport.ts";
import { LanceError } from "../../namespace/errors.ts";
import { signalOf } from "../../runtime/late-signal.ts";
import { SERVER } from "../errors.ts";

/** Headers that fetch sets itself. */
const OWN = new Set(["accept-encoding", "user-agent"]);

/**
 * Creates a transport over fetch, for browsers and other platforms without Node's connection pools.
 *
 * @param uri base of the REST API, without `/v1`.
 */
export function createFetchTransport(uri: string, send: Fetch): UpstreamTransport {
  const base = uri.replace(/\/+$/, "").replace(/\/v1$/, "");

  return {
    base,
    async send({ method, target, headers, body, streams, signal: ending }) {
      const signal = signalOf(ending);
      signal.throwIfAborted();
      // Another server would get the credentials, and a change would become a read of another page.
      const init: RequestInit = { method, headers: pairsOf(headers), signal, redirect: "error" };
      const upload = typeof body === "object" ? watchBody(body) : undefined;
      if (upload !== undefined) Object.assign(init, await fetchBody(upload.pieces, signal));
      else if (typeof body === "string") init.body = body;
      const known = () => (signal.aborted ? signal.reason : upload?.failure);
      const answer = await failing(
        // Whether the request was sent is unknown.
        "reset",
        `${SERVER} cannot be reached`,
        send(base + target, init),
        known,
      );
      const { status } = answer;
      const found = { status, headers: Object.fromEntries(answer.headers) };
      if (streams && status < 300) return { ...found, body: "", pieces: piecesOf(answer, known) };
      const text = await failing("truncated", BROKEN, answer.text(), known);
      return { ...found, body: text, pieces: undefined };
    },
    close: async () => {},
  };
}

/** Returns why a request failed, if the caller or the source of the body ended it. */
type KnownReason = () => unknown;

const BROKEN = `the answer of ${SERVER} broke off`;

async function* piecesOf(answer: Response, known: KnownReason): AsyncIterable<Uint8Array> {
  try {
    yield* answerPieces(answer);
  } catch (thrown) {
    throw known() ?? new UpstreamFailure("truncated", BROKEN, thrown);
  }
}

/** An error of fetch does not reveal its cause; the step of the exchange that threw it does. */
async function failing<T>(
  kind: FailureKind,
  message: string,
  work: Promise<T>,
  known: KnownReason,
): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    throw known() ?? new UpstreamFailure(kind, message, thrown);
  }
}

function pairsOf(headers: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string;
    if (!OWN.has(name)) pairs.push([name, headers[index + 1] as string]);
  }
  return pairs;
}

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
interface WatchedBody {
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
