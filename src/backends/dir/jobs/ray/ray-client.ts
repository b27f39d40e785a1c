import { Agent, request } from "undici";
import { LanceError } from "../../../../namespace/errors.ts";
import { Circuit } from "../../../../runtime/circuit.ts";
import { isJsonObject } from "../../../../runtime/text.ts";

/** States of a job in Ray; the last three are final. */
export type RayState = "PENDING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "STOPPED";

/** A job as Ray describes it. */
export interface RayJob {
  readonly state: RayState;
  /** The last line of what Ray says of it, which for a driver that died is the last one of its log. */
  readonly message: string;
}

/** A job to submit. Everybody who sees Ray's list of jobs sees all of it. */
export interface RaySubmission {
  readonly id: string;
  /** The command line of the driver, for a shell. */
  readonly entrypoint: string;
  readonly runtimeEnv: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The public jobs API of a Ray cluster. Each call throws ServiceUnavailable if no head answers it. */
export interface RayClient {
  /** Submits a job; one with the same id that exists already takes its place. */
  submit(job: RaySubmission): Promise<void>;
  /** Returns a job; undefined if Ray does not know it, for example because its head was restarted. */
  find(id: string): Promise<RayJob | undefined>;
  /** Returns the log of a job's driver; empty for an unknown job. */
  logs(id: string): Promise<string>;
  /** Stops a job; nothing happens to one that has ended or does not exist. */
  stop(id: string): Promise<void>;
  close(): Promise<void>;
}

/** Options of {@link createRayClient}. */
export interface RayClientOptions {
  /** Addresses of the dashboards of heads, such as `http://head:8265`; the first that answers is used. */
  readonly addresses: readonly string[];
  /** Token of the cluster. Default: the cluster asks for none. */
  readonly token?: string | undefined;
  /** Longest wait for an answer, in milliseconds. Default: 15,000. */
  readonly timeoutMs?: number | undefined;
}

/** Most of an answer that is read, in bytes. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Failures in a row after which an address is left alone, and for how long, in milliseconds. */
const CIRCUIT = { failures: 3, openMs: 1_000, longestOpenMs: 30_000 };

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Creates a client of the jobs API. */
export function createRayClient({ addresses, token, timeoutMs = 15_000 }: RayClientOptions): RayClient {
  const agent = new Agent({ connections: 4 });
  let closing: Promise<void> | undefined;
  const heads = addresses.map((address) => ({
    address: address.replace(/\/+$/, ""),
    circuit: new Circuit(CIRCUIT),
    failure: "",
  }));
  const headers = {
    "user-agent": "lance-gateway",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };

  async function ask(address: string, method: "GET" | "POST", path: string, body?: object): Promise<Answer> {
    const answer = await request(`${address}/api/jobs/${path}`, {
      dispatcher: agent,
      method,
      headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`);
      chunks.push(chunk);
    }
    return { status: answer.statusCode, text: Buffer.concat(chunks).toString("utf8") };
  }

  /** Asks the heads in turn; an answer below 500 counts. */
  async function send(method: "GET" | "POST", path: string, body?: object): Promise<Answer> {
    const reasons: string[] = [];
    for (const head of heads) {
      const { address, circuit } = head;
      const turn = circuit.enter();
      if (turn === undefined) {
        reasons.push(head.failure);
        continue;
      }
      try {
        const answer = await ask(address, method, path, body);
        turn.tell(answer.status < 500 ? "working" : "failing");
        if (answer.status === 401 || answer.status === 403) throw refused(address);
        if (answer.status < 500) return answer;
        head.failure = `${address} answers ${answer.status}: ${lastLine(answer.text)}`;
      } catch (error) {
        turn.tell("failing");
        if (error instanceof LanceError) throw error;
        head.failure = `${address}: ${reasonOf(error, timeoutMs)}`;
      }
      reasons.push(head.failure);
    }
    throw new LanceError("ServiceUnavailable", `Ray does not answer: ${reasons.join("; ")}`);
  }

  async function find(id: string): Promise<RayJob | undefined> {
    const { status, text } = await send("GET", id);
    if (status === 404) return undefined;
    const { status: state, message } = objectIn(text);
    return { state: state as RayState, message: typeof message === "string" ? lastLine(message) : "" };
  }

  return {
    find,
    async submit({ id, entrypoint, runtimeEnv, metadata }) {
      // Ray answers 500 for an id that exists.
      if ((await find(id)) !== undefined) return;
      const body = { submission_id: id, entrypoint, runtime_env: runtimeEnv, metadata };
      let failure: unknown;
      try {
        const { status, text } = await send("POST", "", body);
        if (status === 200) return;
        failure = new LanceError("InvalidInput", `Ray refuses the job (${status}): ${lastLine(text)}`);
      } catch (error) {
        failure = error;
      }
      // The answer to an accepted job may have been lost.
      if ((await find(id)) === undefined) throw failure;
    },
    async logs(id) {
      const { status, text } = await send("GET", `${id}/logs`);
      if (status !== 200) return "";
      const { logs } = objectIn(text);
      return typeof logs === "string" ? logs : "";
    },
    async stop(id) {
      await send("POST", `${id}/stop`);
    },
    close: () => (closing ??= agent.close()),
  };
}

function objectIn(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text);
  return isJsonObject(value) ? value : {};
}

function refused(address: string): LanceError {
  return new LanceError("ServiceUnavailable", `Ray at ${address} refuses the token of --ray-token-file`);
}

/** Returns the last line with a text; Ray answers with the traceback of its failure, whose last line says what was wrong. */
function lastLine(text: string): string {
  const lines = text.split("\n").filter((line) => /\w/.test(line));
  return (lines.at(-1) ?? "").trim().slice(0, 300);
}

function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, code, message } = error as NodeJS.ErrnoException;
  if (name === "TimeoutError") return `no answer within ${timeoutMs} ms`;
  return message || code || name;
}
