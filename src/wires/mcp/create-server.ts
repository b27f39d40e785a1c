import { McpServer } from "@modelcontextprotocol/server";
import type { Namespace } from "../../client/namespace.ts";
import { CATALOG_TOOLS } from "./catalog-tools.ts";
import { ROW_TOOLS, sqlTool } from "./row-tools.ts";
import { errorForModel, type RunSql, type Tool, toolError } from "./tool.ts";
import { WRITE_TOOLS } from "./write-tools.ts";

/** Options of {@link createMcpServer}. */
export interface McpServerOptions {
  /** The catalog as the caller may use it. */
  readonly namespace: Namespace;
  /** Runs statements in SQL. Default: the tool for it is left out. */
  readonly sql?: RunSql | undefined;
  /** Whether tools that change data are offered. */
  readonly writes: boolean;
  /** Version of the program. */
  readonly version: string;
  /** Ends all calls. */
  readonly signal: AbortSignal;
  /** Receives the faults of tools, which the model does not see. */
  onFault(fault: unknown, tool: string): void;
}

const READING =
  "Tables of Lance, a columnar format for vectors, text and other data, in nested namespaces. Begin with list_tables and list_namespaces, then describe_table, then query_table.";
const WRITING = "Writes take effect at once, and every write makes a version of its table.";

/** Creates a server of the Model Context Protocol for a caller. */
export function createMcpServer(options: McpServerOptions): McpServer {
  const { version, writes, sql } = options;
  const server = new McpServer(
    { name: "lance-gateway", title: "Lance Gateway", version },
    {
      capabilities: { tools: { listChanged: false } },
      instructions: writes ? `${READING} ${WRITING}` : READING,
    },
  );
  const tools = [
    ...CATALOG_TOOLS,
    ...ROW_TOOLS,
    ...(sql ? [sqlTool(writes)] : []),
    ...(writes ? WRITE_TOOLS : []),
  ];
  for (const tool of tools) addTool(server, tool, options);
  return server;
}

function addTool(server: McpServer, tool: Tool, { namespace, sql, signal, onFault }: McpServerOptions): void {
  const { name, title, description, input: inputSchema, effect } = tool;
  const annotations = {
    readOnlyHint: effect === "reads",
    destructiveHint: effect === "changes",
    openWorldHint: false,
  };
  server.registerTool(name, { title, description, inputSchema, annotations }, async (input, { mcpReq }) => {
    try {
      const context = { namespace, sql, signal: AbortSignal.any([signal, mcpReq.signal]) };
      return { content: [{ type: "text", text: await tool.run(input, context) }] };
    } catch (thrown) {
      const error = toolError(thrown);
      if (error !== thrown) onFault(thrown, name);
      return { content: [{ type: "text", text: errorForModel(error) }], isError: true };
    }
  });
}
