import type { IncomingHttpHeaders } from "node:http";
import { BlockList, isIP } from "node:net";

/** Returns the address of a client, given that of its connection, which a Unix socket does not have. */
export type FindClient = (peer: string | undefined, headers: IncomingHttpHeaders) => string | undefined;

/** Header in which proxies name their clients. */
export type ClientHeader = "x-forwarded-for" | "forwarded";

/** The peers that connect through a Unix socket, among trusted proxies. */
export const UNIX_PEERS = "unix";

const BITS = { 4: 32, 6: 128 } as const;

/**
 * Creates the search for the address of a client behind proxies. Each proxy appends the address from which it was
 * called to `forwarded` (RFC 7239) or `x-forwarded-for`, so the client is the last address that is not a trusted
 * proxy's. A client may have written everything before that, and all of a header that the proxies pass on unchanged.
 *
 * @param trusted networks of the proxies, such as `10.0.0.0/8` or `::1`, and `unix`.
 * @param header the one that the proxies write; the other one does not count.
 */
export function createFindClient(
  trusted: readonly string[],
  header: ClientHeader = "x-forwarded-for",
): FindClient {
  if (trusted.length === 0) return (peer) => peer;
  const isTrusted = createProxyCheck(trusted);

  return (peer, headers) => {
    let client = peer;
    const hops = hopsOf[header](headers);
    while (isTrusted(client)) {
      const hop = hops.pop();
      // A proxy that hides its client is the last that is known.
      if (hop === undefined || isIP(hop) === 0) break;
      client = hop;
    }
    return client;
  };
}

/** Creates the check of whether an address is that of a trusted proxy; undefined is that of a Unix socket. */
export function createProxyCheck(trusted: readonly string[]): (address: string | undefined) => boolean {
  const proxies = new BlockList();
  for (const network of trusted) {
    if (network === UNIX_PEERS) continue;
    const [address = "", prefix] = network.split("/");
    const family = isIP(address) as 4 | 6;
    proxies.addSubnet(address, Number(prefix ?? BITS[family]), `ipv${family}`);
  }
  const trustsUnix = trusted.includes(UNIX_PEERS);
  return (address) =>
    address === undefined ? trustsUnix : proxies.check(address, `ipv${isIP(address) as 4 | 6}`);
}

/** Return the addresses that proxies have noted, the nearest one last. */
const hopsOf: Readonly<Record<ClientHeader, (headers: IncomingHttpHeaders) => string[]>> = {
  "x-forwarded-for": ({ "x-forwarded-for": list = "" }) => elementsOf(list).map(addressIn),
  forwarded: ({ forwarded = "" }) => elementsOf(forwarded).map((element) => addressIn(forIn(element))),
};

function elementsOf(header: string | string[]): string[] {
  const list = String(header);
  return list === "" ? [] : list.split(",");
}

function forIn(element: string): string {
  return /(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;\s]*))/i.exec(element)?.slice(1).find(Boolean) ?? "";
}

/** Returns an address without its port and brackets. */
function addressIn(text: string): string {
  const node = text.trim();
  return /^\[(.*)\](?::\d+)?$/.exec(node)?.[1] ?? /^([\d.]+):\d+$/.exec(node)?.[1] ?? node;
}
