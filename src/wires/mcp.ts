import type { TLSSocket } from "node:tls";
import { create } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { createCall } from "../namespace/call/call.ts";
import { senderKey } from "../namespace/call/caller-key.ts";
import { isRefused } from "../namespace/call/reception.ts";
import { LanceError } from "../namespace/errors.ts";
import { createByteBudget, DEFAULT_MAX_MESSAGE_BYTES } from "../namespace/memory/byte-budget.ts";
import type { AnswerMcp, McpCaller } from "../namespace/service.ts";
import { signalOf } from "../runtime/late-signal.ts";
import { createLoopPace } from "../runtime/loop-pace.ts";
import { parseJson } from "../transcode/json/parse.ts";
import { noteCall, originOf } from "./arrival.ts";
import { timeAllowed } from "./deadline.ts";
import { FREE_BYTES } from "./limits.ts";
import { checkNoForm, readJson } from "./rest/body.ts";
import type { Exchange } from "./rest/exchange.ts";
import { flattenHeaders, hostOf, knownError, type RestRequest } from "./rest/http.ts";
import { openExchange } from "./rest/plugin.ts";
import { type RestCallOptions, timeoutOf } from "./rest/serve.ts";

/** Path of MCP. */
export const MCP_PATH = "/mcp";

/** Answers requests of MCP. */
export interface McpEndpoint {
  /** Loads what answers, at the first request. */
  load(): Promise<AnswerMcp>;
  /** Returns the issuers of the tokens that the gateway accepts now. */
  issuers(): readonly string[];
}

/** Options of {@link mcpPlugin}. */
export interface McpOptions extends RestCallOptions {
  readonly endpoint: McpEndpoint;
  readonly silenceMs?: number | undefined;
}

/**
 * MCP over streamable HTTP, without sessions. The calls that a request makes have the headers, the connection and the deadline of the request, and
 * pass the pipeline as those of other wires do.
 */
export const mcpPlugin: FastifyPluginCallback<McpOptions> = (app, options, done) => {
  const serve = createServeMcp(options);
  app.post(MCP_PATH, (request: FastifyRequest, reply: FastifyReply) =>
    serve(openExchange(request, reply, options)).then(() => (reply.sent ? undefined : reply)),
  );
  const method = app.supportedMethods.filter((each) => each !== "POST");
  app.route({
    method,
    url: MCP_PATH,
    handler() {
      const message = `${MCP_PATH} takes POST only: there are no sessions and no streams of events`;
      throw new LanceError("MethodNotAllowed", message, { headers: { allow: "POST" } });
    },
  });
  addMetadata(app, MCP_PATH, options.endpoint);
  done();
};

function createServeMcp(options: McpOptions): (exchange: Exchange) => Promise<void> {
  const { endpoint, service, refused, budget = createByteBudget(), pace = createLoopPace() } = options;
  const { maxMessageBytes: maxBytes = DEFAULT_MAX_MESSAGE_BYTES, defaultDeadlineMs = 0 } = options;

  return async (exchange) => {
    const { request, requestId } = exchange;
    const hold = budget.open(FREE_BYTES);
    let begun = false;
    let failure: LanceError | undefined;
    try {
      checkNoForm(request.headers["content-type"]);
      const own = callerOf(exchange, defaultDeadlineMs);
      const { headers, certificate } = own;
      const received = await service.receive?.({ method: FIRST, headers, certificate, hasHeadersOnly: true });
      if (exchange.done) return;
      if (isRefused(received)) {
        // The pipeline records the refusal, and delays that of a guess.
        const call = createCall({ ...own, method: FIRST, protocol: "mcp", accept: undefined });
        call.reception = received;
        noteCall(request.headers, call);
        begun = call.begun = true;
        await service.unary(FIRST, create(FIRST.input), call);
      }
      const senderOf = () => senderKey({ reception: received, peer: own.peer });
      const json = await readJson(exchange, { maxBytes, hold, senderOf, pace });
      if (exchange.done) return;
      const body = checkMessages(typeof json === "string" ? parseJson(json, "request body") : json?.value);
      const caller: McpCaller = {
        ...own,
        reception: received,
        began(call) {
          begun = true;
          noteCall(request.headers, call);
        },
        failed(error) {
          failure ??= error;
        },
      };
      const answer = await endpoint.load();
      const response = await answer(webRequestOf(exchange, own.signal), body, caller);
      await send(exchange, response, () => {
        // A client that could not be proved at once learns here that it has to sign in.
        if (failure?.is("Unauthenticated")) throw failure;
      });
    } catch (thrown) {
      if (!begun) {
        const { path } = exchange;
        refused?.({
          protocol: "mcp",
          code: knownError(thrown).kind,
          requestId,
          path,
          headers: request.headers,
        });
      }
      if (!exchange.done) exchange.fail(challenged(thrown, request, MCP_PATH, endpoint));
    } finally {
      hold.release();
    }
  };
}

/** Operation under which the records have a request whose sender is refused before it is read. */
const FIRST = LanceNamespaceService.method.listNamespaces;

/** Most messages in a batch, which earlier versions of the protocol have. */
const MAX_BATCH = 16;

/** @throws LanceError InvalidInput for a body that is not a message, or has too many. */
function checkMessages(body: unknown): unknown {
  if (typeof body !== "object" || body === null)
    throw new LanceError("InvalidInput", "request body must be a JSON-RPC message");
  if (Array.isArray(body) && body.length > MAX_BATCH)
    throw new LanceError("InvalidInput", `a batch has at most ${MAX_BATCH} messages`);
  return body;
}

/** Headers that describe the request itself, and not the calls that it makes. */
const OWN_HEADERS =
  /^(?:content-.*|transfer-encoding|accept.*|range|if-.*|prefer|idempotency-key|mcp-.*|x-lance-gateway-tell|x-request-timeout-ms|connection|keep-alive|te|upgrade|expect)$/;

function callerOf(exchange: Exchange, defaultMs: number) {
  const { request, requestId, log } = exchange;
  const { "x-request-timeout-ms": given, ...all } = flattenHeaders(request.headers);
  const timeout = timeAllowed(timeoutOf(given), defaultMs);
  if (timeout !== undefined) exchange.expireIn(timeout);
  const headers: Record<string, string> = Object.create(null);
  for (const name in all) if (!OWN_HEADERS.test(name)) headers[name] = all[name] as string;
  return {
    ...originOf(request.headers, request.socket),
    ...{ headers, requestId, log, signal: signalOf(exchange.ending) },
    deadline: timeout === undefined ? undefined : Date.now() + timeout,
  };
}

/** Headers that the protocol itself reads. */
const PROTOCOL_HEADERS = /^(?:accept|mcp-.*)$/;

function webRequestOf({ request }: Exchange, signal: AbortSignal): Request {
  const headers = new Headers({ "content-type": "application/json" });
  for (const [name, value] of Object.entries(flattenHeaders(request.headers)))
    if (PROTOCOL_HEADERS.test(name)) headers.set(name, value);
  return new Request(`http://gateway${MCP_PATH}`, { method: "POST", headers, signal });
}

/**
 * Sends a response, which is JSON or a stream of events.
 *
 * @param check called once the result is there, before the head of the answer goes.
 */
async function send(exchange: Exchange, response: Response, check: () => void): Promise<void> {
  const { status, body } = response;
  const type = response.headers.get("content-type") ?? undefined;
  exchange.responseHeaders = { "cache-control": "no-store" };
  if (body === null || type?.startsWith("text/event-stream") !== true) {
    const text = await response.text();
    check();
    exchange.answer(status, body === null ? undefined : type, text);
    return;
  }
  let isFirst = true;
  for await (const piece of body) {
    if (exchange.done) return;
    if (isFirst) {
      check();
      exchange.begin(status, type);
    }
    isFirst = false;
    await exchange.write(piece);
  }
  if (isFirst) exchange.begin(status, type);
  exchange.finish();
}

/** Where clients find the issuers of a resource's tokens (RFC 9728). */
const METADATA = "/.well-known/oauth-protected-resource";

/** Knows the issuers of tokens that are accepted now. */
interface WithIssuers {
  issuers(): readonly string[];
}

/** Serves the metadata of a protected resource, where tokens of issuers are accepted. */
export function addMetadata(app: FastifyInstance, path: string, { issuers }: WithIssuers): void {
  for (const url of [METADATA, `${METADATA}${path}`]) {
    app.get(url, (request, reply) => {
      const servers = issuers();
      if (servers.length === 0)
        throw new LanceError("RouteNotFound", "the gateway does not accept issuer tokens");
      return reply.header("cache-control", "no-store").send({
        resource: `${resourceOrigin(request.raw)}${path}`,
        authorization_servers: servers,
        bearer_methods_supported: ["header"],
        resource_name: "Lance Gateway",
      });
    });
  }
}

/** Adds the address of the metadata to the challenge of a refusal, where tokens of issuers are accepted. */
export function challenged(
  thrown: unknown,
  request: RestRequest,
  path: string,
  { issuers }: WithIssuers,
): unknown {
  if (!(thrown instanceof LanceError) || !thrown.is("Unauthenticated") || issuers().length === 0)
    return thrown;
  const given = thrown.headers["www-authenticate"] ?? "Bearer";
  const address = `resource_metadata="${resourceOrigin(request)}${METADATA}${path}"`;
  const challenge = given.replace(/\bBearer\b( (?=\w+=))?/, (_, more) =>
    more === undefined ? `Bearer ${address}` : `Bearer ${address}, `,
  );
  return new LanceError(thrown.kind, thrown.message, {
    headers: { ...thrown.headers, "www-authenticate": challenge },
    cause: thrown,
  });
}

/** Characters of a host with a port. */
const HOST = /^[\w.[\]:-]+$/;

/** Returns the origin as the client knows it. Only this client sees it, so a header of its own, or of a proxy, may say it. */
function resourceOrigin({ headers, socket }: Pick<RestRequest, "headers" | "socket">): string {
  const host = hostOf(headers) ?? "";
  const isTls = (socket as TLSSocket | undefined)?.encrypted === true;
  const isHttps = isTls || headers["x-forwarded-proto"] === "https";
  return `${isHttps ? "https" : "http"}://${HOST.test(host) ? host : "localhost"}`;
}
