import type {
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
} from "@bufbuild/protobuf";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { createCaller } from "../../client/caller.ts";
import { createNamespace, type Namespace } from "../../client/namespace.ts";
import { type ViewCalls, viewCalls } from "../../client/view-calls.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { ViewService } from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, createCall } from "../../namespace/call/call.ts";
import { LanceError, toLanceError } from "../../namespace/errors.ts";
import type { LanceNamespace, ViewOperations } from "../../namespace/lance-namespace.ts";
import type { AnswerMcp, AnyMethod, McpCaller, Service } from "../../namespace/service.ts";
import { createMcpServer } from "./create-server.ts";
import type { RunSql } from "./tool.ts";

/** Options of {@link createMcpHttp}. */
export interface McpHttpOptions {
  readonly service: Service;
  /** Returns whether tools that change data are offered now. */
  writes(): boolean;
  readonly version: string;
  /** Returns what runs the statements of a caller. Default: SQL is not offered. */
  sqlOf?(caller: McpCaller): RunSql;
}

/**
 * Creates the function that answers MCP over HTTP. It keeps nothing between two requests: each has a server of its own, which ends with it, and
 * nothing is pushed to clients.
 */
export function createMcpHttp({ service, writes, version, sqlOf }: McpHttpOptions): AnswerMcp {
  const callers = new WeakMap<Request, McpCaller>();
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const caller = callers.get(requestInfo as Request) as McpCaller;
      const { signal, log, requestId } = caller;
      return createMcpServer({
        ...{
          namespace: namespaceOfService(service, caller),
          writes: writes(),
          version,
          signal,
          sql: sqlOf?.(caller),
        },
        onFault: (err, tool) => log.error({ err, tool, requestId }, "MCP tool failed"),
      });
    },
    // The tools do not change while the server runs, so a subscription would only hold a connection.
    { maxSubscriptions: 0 },
  );
  return (request, parsedBody, caller) => {
    callers.set(request, caller);
    return handler.fetch(request, { parsedBody });
  };
}

/**
 * Returns the catalog as a caller may use it. Every call passes the whole pipeline, as a request of this caller by any other protocol does.
 */
export function namespaceOfService(service: Service, caller: McpCaller): Namespace & ViewCalls {
  const methods: readonly AnyMethod[] = [
    ...LanceNamespaceService.methods,
    ...ViewService.methods,
    ...LanceDbService.methods,
  ];
  const operations: Partial<LanceNamespace & ViewOperations> = Object.fromEntries(
    methods.map((method) => [method.localName, operationOf(method, service, caller)]),
  );
  const { headers } = caller;
  return {
    ...createNamespace({ name: "gateway", operations, headers }),
    ...viewCalls(createCaller("gateway", operations, headers)),
  };
}

function operationOf(method: AnyMethod, service: Service, caller: McpCaller): unknown {
  switch (method.methodKind) {
    case "unary":
      return (request: Message, own: Call) => {
        const call = begin(method, own, caller);
        return known(service.unary(method as DescMethodUnary, request, call), caller);
      };
    case "client_streaming":
      return (request: Message, data: AsyncIterable<Uint8Array>, own: Call) => {
        const call = begin(method, own, caller);
        return known(service.upload(method as DescMethodClientStreaming, request, data, call), caller);
      };
    case "server_streaming":
      return async function* (request: Message, own: Call) {
        const call = begin(method, own, caller);
        try {
          yield* service.download(method as DescMethodServerStreaming, request, call);
        } catch (thrown) {
          throw failureOf(thrown, caller);
        }
      };
    default:
      throw new Error(`${method} streams both ways, which no operation does`);
  }
}

/** Creates the call of the service for a call of the client. */
function begin(method: AnyMethod, { headers, signal, accept }: Call, caller: McpCaller): Call {
  const { address, peer, certificate, requestId, deadline, log, reception } = caller;
  const call = createCall({
    ...{ method, headers, signal, accept, address, peer, certificate, requestId, deadline, log },
    protocol: "mcp",
  });
  call.reception = reception;
  caller.began(call);
  call.begun = true;
  return call;
}

async function known(response: Promise<Message>, caller: McpCaller): Promise<Message> {
  try {
    return await response;
  } catch (thrown) {
    throw failureOf(thrown, caller);
  }
}

/** Returns a failure as an error of the table, and logs what the caller must not see. */
function failureOf(thrown: unknown, { log, requestId, failed }: McpCaller): LanceError {
  const error = toLanceError(thrown);
  if (!(thrown instanceof LanceError))
    log.error({ err: thrown, requestId }, "MCP call failed with an unknown error");
  failed(error);
  return error;
}
