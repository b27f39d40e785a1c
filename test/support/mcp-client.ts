import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** A client of MCP over HTTP. */
export interface McpClient extends AsyncDisposable {
  readonly client: Client;
  /** Calls a tool and returns its text; its error is thrown. */
  call(tool: string, input?: object): Promise<string>;
  /** Calls a tool and returns its JSON. */
  json(tool: string, input?: object): Promise<Record<string, unknown>>;
}

/** The error of a tool, as the model reads it. */
export class ToolFailure extends Error {}

/** Protocol revisions that a client may speak: the stateless one, and the one with a handshake. */
export const MCP_ERAS = ["modern", "legacy"] as const;

/** Connects a client of MCP to a gateway. */
export async function connectMcp(
  port: number,
  headers: Readonly<Record<string, string>> = {},
  {
    era = "modern",
    path = "/mcp",
  }: { readonly era?: (typeof MCP_ERAS)[number]; readonly path?: string } = {},
): Promise<McpClient> {
  const client = new Client(
    { name: "test", version: "1" },
    era === "legacy" ? { versionNegotiation: { mode: "legacy" } } : { versionNegotiation: { mode: "auto" } },
  );
  const url = new URL(`http://127.0.0.1:${port}${path}`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { ...headers } } }));
  return toolsOf(client);
}

/** Returns the tools of a connected client. */
export function toolsOf(client: Client): McpClient {
  async function call(name: string, input: object = {}): Promise<string> {
    const { content, isError } = await client.callTool({ name, arguments: { ...input } });
    const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
    if (isError === true) throw new ToolFailure(text);
    return text;
  }
  return {
    client,
    call,
    json: async (name, input) => JSON.parse(await call(name, input)) as Record<string, unknown>,
    [Symbol.asyncDispose]: () => client.close(),
  };
}
