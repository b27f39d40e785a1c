import type { IncomingHttpHeaders } from "node:http";
import { setAddress } from "../wires/address.ts";

/** Which parts of a request's address name a database. */
export interface Addressing {
  /** What stands before the name of a database in a path, for example `/db`. Default: paths name none. */
  readonly pathPrefix?: string | undefined;
  /** The hosts that name databases; `*.example.com` is any below that one. Default: none do. */
  readonly hosts?: readonly string[] | undefined;
}

/**
 * Takes from the address of a request what the choice of its database needs, and keeps it beside the headers, where
 * all wires find it and no client can write.
 *
 * @returns the target without the database.
 */
export type TakeAddress = (target: string, headers: IncomingHttpHeaders) => string;

/** Compiles {@link TakeAddress}; undefined when there is nothing to take. */
export function createTakeAddress({ pathPrefix, hosts = [] }: Addressing): TakeAddress | undefined {
  if (pathPrefix === undefined && hosts.length === 0) return undefined;
  const start = pathPrefix === undefined ? undefined : `${pathPrefix}/`;

  return (target, headers) => {
    // HTTP/2 says the host in a header of its own, which comes before this one.
    const host = hosts.length > 0 ? hostOf(headers) : undefined;
    const end = start !== undefined && target.startsWith(start) ? target.indexOf("/", start.length) : -1;
    const database = end < 0 ? undefined : decoded(target.slice(start?.length, end));
    setAddress(headers, { host, database });
    return end < 0 ? target : target.slice(end);
  };
}

function hostOf(headers: IncomingHttpHeaders): string | undefined {
  return (headers[":authority"] as string | undefined) ?? headers.host;
}

const VISIBLE = /^[!-~]+$/;

/** The name that a segment of a path stands for; one that no database can have stays as it is. */
function decoded(segment: string): string {
  try {
    const name = decodeURIComponent(segment);
    return VISIBLE.test(name) ? name : segment;
  } catch {
    return segment;
  }
}
