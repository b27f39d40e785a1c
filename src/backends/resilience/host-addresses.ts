import { lookup } from "node:dns/promises";
import { isIP } from "node:net";

/** An address of a host. */
export interface HostAddress {
  readonly address: string;
  readonly family: number;
}

/** Finds all addresses of a host. */
export type ResolveHost = (host: string) => Promise<readonly HostAddress[]>;

/** Maximum number of servers of a name; each has its own connections. */
const MAX_SERVERS = 64;

/** Resolves through the system, including `/etc/hosts`. */
export const resolveBySystem: ResolveHost = (host) => lookup(host, { all: true });

/** Whether a host is a name, whose addresses may change. */
export function isName(host: string): boolean {
  return isIP(host.replace(/^\[|\]$/g, "")) === 0;
}

/**
 * Groups addresses by the server to which they presumably lead: a server has an address of each family, and a
 * connection tries both. The order of the answer does not matter, and only the first addresses of very many are used.
 */
export function serversOf(addresses: readonly HostAddress[]): readonly (readonly HostAddress[])[] {
  const families = [4, 6].map((wanted) => {
    const found = new Map(
      addresses.filter(({ family }) => family === wanted).map((each) => [each.address, each]),
    );
    return [...found.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
  });
  const count = Math.min(MAX_SERVERS, Math.max(...families.map(({ length }) => length)));
  return Array.from({ length: count }, (_, index) =>
    families.flatMap((family) => (family.length === 0 ? [] : [family[index % family.length] as HostAddress])),
  );
}
