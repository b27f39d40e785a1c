import type { Call } from "../../namespace/call/call.ts";
import { DATABASE_HEADERS } from "../../namespace/call/headers.ts";
import { databaseOfRegion } from "../../namespace/call/local-region.ts";
import { LanceError } from "../../namespace/errors.ts";

/** The header whose value the host repeats where the region is `local`. */
const OF_REGION = "x-lancedb-database";

/**
 * Returns the name of the database for which a client sends a call: the value of `x-service-database` or of `x-lancedb-database`, or the
 * name before `.local.api.lancedb.com` in the requested host. With a `…-prefix` header, it is `NAME/PREFIX`.
 *
 * @returns undefined if the call names no database.
 * @throws LanceError InvalidInput for a prefix without a name
 */
export function databaseNamed({ headers, address }: Pick<Call, "headers" | "address">): string | undefined {
  for (const header of DATABASE_HEADERS) {
    const prefix = headers[`${header}-prefix`];
    const name = headers[header] || (header === OF_REGION ? databaseOfRegion(address?.host) : undefined);
    if (name) return prefix ? `${name}/${prefix}` : name;
    if (prefix) throw new LanceError("InvalidInput", `${header}-prefix requires ${header}`);
  }
  return undefined;
}
