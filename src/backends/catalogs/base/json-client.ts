import { create } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { NoteDecision } from "../../../namespace/figures.ts";
import type { ByteBudget } from "../../../namespace/memory/byte-budget.ts";
import { isJsonObject } from "../../../runtime/text.ts";
import type { KeyedCells } from "../../../runtime/threads/keyed-cells.ts";
import { createAnswerBudget, FREE_ANSWER_BYTES } from "../../resilience/answer-budget.ts";
import { createResilience } from "../../resilience/create-resilience.ts";
import { lostAnswer, type Repeatable, type ResiliencePolicy } from "../../resilience/resilience.ts";
import { type ErrorFacts, errorOfAnswer, errorOfFailure } from "../../rest/errors.ts";
import type { HttpTransportOptions } from "../../rest/options.ts";
import type { UpstreamResponse } from "../../rest/transport/transport.ts";
import { createPools } from "../../rest/transport/undici-transport.ts";
import { createIdentity } from "../../upstream-identity/create-identity.ts";
import { createHeaderPolicy, inTrace } from "../../upstream-identity/headers.ts";
import {
  toldToClient,
  type UpstreamCredentials,
  type UpstreamIdentity,
  type UpstreamIdentityOptions,
} from "../../upstream-identity/identity.ts";

/** Options of the connection to a catalog that speaks JSON over HTTP. */
export interface JsonClientOptions extends Omit<HttpTransportOptions, "uri"> {
  /** Addresses of the server; several are the same catalog, and any of them may get any call. */
  readonly uri: string | readonly string[];
  readonly log: Logger;
  readonly resilience?: ResiliencePolicy | undefined;
  readonly noteDecision?: NoteDecision | undefined;
  /** Memory of answers, which backends may share. Default: 512 MiB for this backend. */
  readonly answers?: ByteBudget | undefined;
  /** Headers of every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Headers of clients that are forwarded. Default: those of traces. */
  readonly passHeaders?: readonly string[] | undefined;
  /** Credentials of the calls, or their provider. Default: the client's own. */
  readonly identity?: UpstreamIdentityOptions | UpstreamIdentity | undefined;
  /** Pauses after failed requests for tokens, which workers share. Default: those of this backend alone. */
  readonly tokenPauses?: KeyedCells | undefined;
}

/** A request to a catalog. */
export interface JsonRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Path below the address, percent-encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
  /** Further headers, by lower-case name. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether it changes nothing although it is a POST. Default: only a GET changes nothing. */
  readonly isRead?: boolean;
  /** How errors of this request are read. */
  readonly facts: ErrorFacts;
}

/** A JSON object of an answer. */
export type Json = Readonly<Record<string, unknown>>;

/** Calls a catalog that speaks JSON over HTTP. */
export interface JsonClient {
  /**
   * Sends a request and returns the object of a success; an empty one for a success without a body. Redirects are not followed.
   *
   * @throws LanceError for every other answer, and for a missing one
   */
  send(request: JsonRequest, call: Call): Promise<Json>;
  /** Whether the server answers a request for a path with any status but a server error. */
  ready(path: string): Promise<boolean>;
  close(): Promise<void>;
}

const TRACE_HEADERS = ["traceparent", "tracestate", "baggage"];

/** Largest answer, in bytes: it is parsed in a single step. */
const MAX_ANSWER_BYTES = 4 * 1024 ** 2;

/** Longest time for the server to answer the readiness probe, in milliseconds. */
const PATIENCE_MS = 5_000;

/**
 * Creates a client. It connects with the first call.
 *
 * @throws Error with a single line for unusable options
 */
export async function createJsonClient(options: JsonClientOptions): Promise<JsonClient> {
  const { log, noteDecision, answers = createAnswerBudget(), passHeaders = TRACE_HEADERS } = options;
  const pools = createPools({ maxAnswerBytes: MAX_ANSWER_BYTES, ...options });
  const policy = createHeaderPolicy({ ...options, passHeaders });
  const identity = await createIdentity(options.identity, options.tokenPauses);
  const totalMs = options.timeLimits?.totalMs;
  const upstream = createResilience(pools.endpoints, { ...options.resilience, log, noteDecision, totalMs });
  pools.watch((endpoints) => upstream.replace(endpoints));

  function attempt(request: JsonRequest, call: Call, credentials: UpstreamCredentials, hold: Hold) {
    const { method, facts } = request;
    const body = request.body && JSON.stringify(request.body);
    const target = `${request.path}${queryOf(request.query)}`;
    // The message has nothing for a catalog with an API of its own.
    const pairs = policy.sent(call, create(call.method.input));
    return upstream.run(call, repeatableOf(request), async (transport, signal, progress) => {
      const headers = inTrace(pairs);
      headers.push(
        "accept-encoding",
        "identity",
        "user-agent",
        "lance-gateway",
        "accept",
        "application/json",
      );
      for (const [name, value] of Object.entries(request.headers ?? {})) headers.push(name, value);
      if (body !== undefined) headers.push("content-type", "application/json");
      const url = transport.base + target;
      const signed =
        typeof credentials === "function" ? await credentials({ method, url, headers, body }) : credentials;
      policy.addCredentials(headers, signed);
      let response: UpstreamResponse;
      try {
        const { elapsedMs, onSent } = progress;
        const wire = { method, target, headers, body, streams: false, hold, call, signal, elapsedMs, onSent };
        response = await transport.send(wire);
      } catch (thrown) {
        throw errorOfFailure(thrown, call);
      }
      if (isSuccess(response) || isRefusal(response)) return response;
      throw toldToClient(errorOfAnswer(response, facts), identity);
    });
  }

  const isRefusal = (response: UpstreamResponse) => identity.isRefusal?.(response) ?? response.status === 401;

  return {
    async send(request, call) {
      const hold = answers.open(FREE_ANSWER_BYTES);
      try {
        const credentials = await identity.credentials(call);
        let response = await attempt(request, call, credentials, hold);
        if (isRefusal(response) && identity.refused(call, credentials))
          response = await attempt(request, call, await identity.credentials(call), hold);
        if (!isSuccess(response)) throw toldToClient(errorOfAnswer(response, request.facts), identity, true);
        return objectOf(response, request);
      } finally {
        hold.release();
      }
    },

    async ready(path) {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      const answering = pools.endpoints.map(async ({ target: transport }) => {
        const headers = ["accept", "application/json"];
        const probe = { method: "GET", target: path, headers, body: undefined, streams: false, elapsedMs: 0 };
        const { status } = await transport.send({ ...probe, isProbe: true, signal });
        return status < 500;
      });
      return (await Promise.allSettled(answering)).some((each) => each.status === "fulfilled" && each.value);
    },
    close: () => pools.close(),
  };
}

type Hold = ReturnType<ByteBudget["open"]>;

function isSuccess({ status }: UpstreamResponse): boolean {
  return status >= 200 && status < 300;
}

/** A change has no key by which a catalog would recognise its repetition. */
function repeatableOf({ method, isRead = method === "GET" }: JsonRequest): Repeatable {
  return isRead ? "parallel" : "unsent";
}

function queryOf(query: JsonRequest["query"] = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

/** Returns the object of a success. The change of one that cannot be read is made all the same. */
function objectOf(response: UpstreamResponse, request: JsonRequest): Json {
  const text = response.body.toString("utf8");
  // Unity answers a deletion with a line of text.
  if (text.trim() === "" || request.method === "DELETE") return {};
  const object = parsed(text);
  if (isJsonObject(object)) return object;
  const error = new LanceError(
    "ServiceUnavailable",
    "the answer of the upstream catalog is not a JSON object",
    {
      fault: "broken",
    },
  );
  throw repeatableOf(request) === "unsent" ? lostAnswer(error) : error;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
