import { Pool } from "undici";
import { Circuit } from "../../runtime/circuit.ts";
import { isJsonObject } from "../../runtime/text.ts";

/** A server of Open Policy Agent. */
export interface OpaServer {
  /**
   * Asks for the value of the rule with an input; undefined if the rule has none.
   *
   * @throws CircuitOpenError if the server is not asked, because it has just failed several times.
   * @throws Error if the server cannot be asked, does not answer in time, or answers anything else.
   */
  ask(input: object): Promise<unknown>;
  close(): void;
}

/** Options of {@link createOpaServer}. */
export interface OpaServerOptions {
  /** Address of the rule. */
  readonly url: string;
  /** Longest time for an answer, in milliseconds. */
  readonly timeoutMs: number;
  /** Certificates of authorities that may have signed the server's, in PEM. Default: those that Node trusts. */
  readonly ca?: string | undefined;
  /** Returns the gateway's own token for the server. Default: it needs none. */
  readonly token?: (() => string) | undefined;
}

/** Failures in a row after which the circuit opens, and for how long, in milliseconds. */
const FAILURES = 5;
const OPEN_MS = 1_000;

/** Most connections to the server; further questions wait. */
const CONNECTIONS = 32;

/** Largest answer, in bytes. */
const MAX_ANSWER_BYTES = 1024 ** 2;

/** Creates the way to a server. Redirects are not followed. */
export function createOpaServer({ url, timeoutMs, ca, token }: OpaServerOptions): OpaServer {
  const { origin, pathname: path } = new URL(url);
  const pool = new Pool(origin, { connections: CONNECTIONS, ...(ca !== undefined && { connect: { ca } }) });
  const circuit = new Circuit({ failures: FAILURES, openMs: OPEN_MS });

  async function post(input: object): Promise<unknown> {
    const { statusCode, body } = await pool.request({
      path,
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token !== undefined && { authorization: `Bearer ${token()}` }),
      },
      body: JSON.stringify({ input }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of body) {
      size += piece.byteLength;
      if (size > MAX_ANSWER_BYTES) throw new Error(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
      pieces.push(piece);
    }
    if (statusCode !== 200) throw new Error(`the server answers ${statusCode}`);
    const answer: unknown = JSON.parse(Buffer.concat(pieces).toString());
    if (!isJsonObject(answer)) throw new Error("the answer is not a JSON object");
    return answer["result"];
  }

  return {
    async ask(input) {
      const turn = circuit.enter();
      if (turn === undefined) throw new CircuitOpenError();
      try {
        const answer = await post(input);
        turn.tell("working");
        return answer;
      } catch (error) {
        turn.tell("failing");
        throw error;
      }
    },
    close: () => void pool.destroy(),
  };
}

/** Error of a question that was not sent, because the server has just failed several times. */
export class CircuitOpenError extends Error {
  constructor() {
    super("the circuit breaker of the policy server is open");
  }
}
