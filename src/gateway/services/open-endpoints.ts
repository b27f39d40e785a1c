import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ServeOptions } from "../../config/options/groups.ts";
import { ownerKey } from "../../namespace/call/caller-key.ts";
import { isRefused } from "../../namespace/call/reception.ts";
import type { McpCaller, Service } from "../../namespace/service.ts";
import { credentialsIn } from "../../pipeline/call/resolve.ts";
import { inSlices } from "../../runtime/pace.ts";
import { codeFile, packageVersion } from "../../runtime/package-files.ts";
import { once } from "../../runtime/promises.ts";
import type { ApiDocuments } from "../../server/app/static-pages.ts";
import type { McpEndpoint } from "../../wires/mcp.ts";
import type { OpenSql } from "./open-sql.ts";

/** Returns the documents of the API, which are made when they are read first; undefined if they are turned off. */
export function openDocument({
  noDocs = false,
  auth: security = [],
}: Partial<Pick<ServeOptions, "noDocs" | "auth">>): ApiDocuments | undefined {
  if (noDocs) return undefined;
  // Loading and making them takes tens of milliseconds, so that parts have turns of the event loop of their own.
  const document = once(async () => {
    await nextTurn();
    await import("../../gen/lance/comments.ts");
    await nextTurn();
    const { documentSteps } = await import("../../server/openapi/document.ts");
    await nextTurn();
    const made = await inSlices(documentSteps({ version: packageVersion(), security }));
    await nextTurn();
    return made;
  });
  const page = once(async () => {
    const { renderPage } = await import("../../server/openapi/page.ts");
    return renderPage(await document());
  });
  return {
    json: async () => JSON.stringify(await document()),
    async file(name) {
      if (name === "index.html") return page();
      return readFile(codeFile(`server/openapi/page/${name}`), "utf8");
    },
  };
}

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
        sqlOf: (caller) => sql.runAs(keyOf(caller), writes()),
      });
    }),
    issuers: () => (options().oidcIssuers ?? []).map(({ issuer }) => issuer),
  };
}

/** Returns the key of a caller of statements. Callers whom this gateway does not know may differ to the upstream by their credentials. */
function keyOf({ reception, headers }: McpCaller): string {
  const principal = isRefused(reception) ? undefined : reception?.principal;
  return ownerKey({ principal, identity: credentialsIn(headers) });
}
