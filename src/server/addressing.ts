import type { IncomingHttpHeaders } from "node:http";
import { PATH_DATABASE } from "../pipeline/route.ts";

/** Which parts of a request's address name a database. */
export interface Addressing {
  /** What stands before the name of a database in a path, for example `/db`. Default: paths name none. */
  readonly pathPrefix?: string | undefined;
  /** Whether the host that was asked for counts. Default: false. */
  readonly host?: boolean | undefined;
}

/**
 * Takes from the address of a request what the choice of its database needs, and hands it on in the headers, which
 * all protocols keep.
 *
 * @returns the target without the database.
 */
export type TakeAddress = (target: string, headers: IncomingHttpHeaders) => string;

/** Compiles {@link TakeAddress}; undefined when there is nothing to take. */
export function createTakeAddress({ pathPrefix, host = false }: Addressing): TakeAddress | undefined {
  if (pathPrefix === undefined && !host) return undefined;
  const start = pathPrefix === undefined ? undefined : `${pathPrefix}/`;

  return (target, headers) => {
    // HTTP/2 says the host in a header of its own, which comes before this one.
    if (host) headers.host = (headers[":authority"] as string | undefined) ?? headers.host;
    if (start === undefined) return target;
    delete headers[PATH_DATABASE];
    if (!target.startsWith(start)) return target;
    const end = target.indexOf("/", start.length);
    if (end < 0) return target;
    headers[PATH_DATABASE] = decoded(target.slice(start.length, end));
    return target.slice(end);
  };
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
