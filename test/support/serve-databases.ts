import type { Databases } from "../../src/config/configuration.ts";
import { servedByName } from "../../src/gateway/backends/served.ts";
import {
  type GatewayContext,
  type ReplaceableGateway,
  serve,
  type WireOptions,
} from "../../src/gateway/compose.ts";
import type { Database } from "../../src/pipeline/call/databases.ts";

/** Serves several databases through all wires and the pipeline. Closing the gateway closes all of them. */
export function serveDatabases(
  named: ReadonlyMap<string, Database>,
  routing: Omit<Databases, "byName">,
  options: WireOptions,
  context: GatewayContext,
): Promise<ReplaceableGateway> {
  return serve({ ...servedByName(named, routing, options), options, context });
}
