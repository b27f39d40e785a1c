import { createMcpHandler } from "@modelcontextprotocol/server";
import type { AnswerMcp, McpCaller } from "../../namespace/call/mcp-caller.ts";
import type { Service } from "../../namespace/service.ts";
import { createMcpServer } from "./create-server.ts";
import { namespaceOfService } from "./service-namespace.ts";
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
