import type { ServeOptions } from "../../config/options/groups.ts";
import { senderKey } from "../../namespace/call/caller-key.ts";
import type { Service } from "../../namespace/service.ts";
import { once } from "../../runtime/once.ts";
import type { McpEndpoint } from "../../wires/mcp.ts";
import { packageVersion } from "../version.ts";
import type { OpenSql } from "./open-sql.ts";

/** Options that decide about MCP. */
type McpOptions = Partial<Pick<ServeOptions, "noMcp" | "mcpWrites" | "readOnly" | "oidcIssuers">>;

/**
 * Returns the endpoint of MCP; undefined if it is turned off. Its libraries are loaded by the first request.
 *
 * @param options returns the options that hold now
 * @param sql runs the statements of agents
 */
export function openMcp(
  options: () => McpOptions,
  service: Service,
  sql: Pick<OpenSql, "runAs">,
): McpEndpoint | undefined {
  if (options().noMcp) return undefined;
  const writes = () => options().mcpWrites === true && options().readOnly !== true;
  return {
    load: once(async () => {
      // Each is evaluated in a turn of its own.
      await import("zod");
      const { createMcpHttp } = await import("../../wires/mcp/http.ts");
      return createMcpHttp({
        ...{ service, writes, version: packageVersion() },
        sqlOf: (caller) => sql.runAs(senderKey(caller), writes()),
      });
    }),
    issuers: () => (options().oidcIssuers ?? []).map(({ issuer }) => issuer),
  };
}
