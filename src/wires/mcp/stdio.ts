import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { createMcpServer, type McpServerOptions } from "./create-server.ts";

/** Serves MCP over standard input and output until the client closes the input, or the signal aborts. */
export async function serveMcpStdio(options: McpServerOptions): Promise<void> {
  const { signal } = options;
  const { promise, resolve } = Promise.withResolvers<void>();
  const handle = serveStdio(() => createMcpServer(options), { transport: new StdioServerTransport() });
  signal.addEventListener("abort", () => resolve(), { once: true });
  if (signal.aborted) resolve();
  process.stdin.once("end", resolve).once("close", resolve);
  await promise;
  await handle.close();
}
