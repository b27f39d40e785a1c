import {
  type FailureKind,
  UpstreamFailure,
  type UpstreamTransport,
} from "../../backends/rest/transport/transport.ts";
import { signalOf } from "../../runtime/time/late-signal.ts";
import { SERVER } from "../connections/server-name.ts";
import { answerPieces, type Fetch, fetchBody, watchBody } from "./fetch-body.ts";

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
