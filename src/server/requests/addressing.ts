import type { IncomingHttpHeaders } from "node:http";
import { databaseOfRegion } from "../../namespace/call/database-context.ts";
import { setAddress } from "../../wires/arrival.ts";
import { hostOf } from "../../wires/rest/http.ts";

/** The parts of a request's address that name a database. */
export interface Addressing {
  /** Prefix of the name of a database in a path, for example `/db`. Default: paths name none. */
  readonly pathPrefix?: string | undefined;
  /** Hosts that name databases; `*.example.com` is any host below it. Default: hosts name none. */
  readonly hosts?: readonly string[] | undefined;
}

/**
 * Extracts the database from the address of a request, and keeps it beside the headers, where all wires find it and
 * no client can write it.
 *
 * @returns the target without the database.
 */
export type TakeAddress = (target: string, headers: IncomingHttpHeaders) => string;

/** Compiles {@link TakeAddress}. Hosts of the region `local` always name a database. */
export function createTakeAddress({ pathPrefix, hosts = [] }: Addressing): TakeAddress {
  const start = pathPrefix === undefined ? undefined : `${pathPrefix}/`;

  return (target, headers) => {
    // HTTP/2 has the host in a header of its own, which overrides this one.
    const requested = hostOf(headers);
    const host = hosts.length > 0 || databaseOfRegion(requested) !== undefined ? requested : undefined;
    const end = start !== undefined && target.startsWith(start) ? target.indexOf("/", start.length) : -1;
    const database = end < 0 ? undefined : decoded(target.slice(start?.length, end));
    if (host !== undefined || database !== undefined) setAddress(headers, { host, database });
    return end < 0 ? target : target.slice(end);
  };
}

const VISIBLE = /^[!-~]+$/;

/** Decodes a segment of a path; a segment that cannot name a database stays unchanged. */
function decoded(segment: string): string {
  try {
    const name = decodeURIComponent(segment);
    return VISIBLE.test(name) ? name : segment;
  } catch {
    return segment;
  }
}
