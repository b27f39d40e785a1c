import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";

/** Options of {@link createGuardedAgent}. */
export interface GuardedAgentOptions {
  readonly guard: AddressGuard;
  /** Most connections to a receiver. */
  readonly connections: number;
  /** Longest time to connect, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Creates an agent that connects to permitted addresses only. It decides about the address to which it then connects, so
 * that a name cannot lead elsewhere between the two.
 */
export function createGuardedAgent({ guard, connections, timeoutMs }: GuardedAgentOptions): Agent {
  const connect = buildConnector({
    lookup: guardedLookup(guard),
    timeout: timeoutMs,
    allowH2: false,
  } as object);
  return new Agent({
    connections,
    connect(options, done) {
      const host = options.hostname.replace(/^\[(.*)\]$/, "$1");
      // The system looks no address up.
      if (isIP(host) !== 0 && !guard.permits(host)) done(refusal(host), null);
      else connect(options, done);
    },
  });
}

function guardedLookup(guard: AddressGuard): LookupFunction {
  return (host, options, done) => {
    lookup(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return done(error, "");
      const permitted = found.filter(({ address }) => guard.permits(address));
      const [first] = permitted;
      if (first === undefined) return done(refusal(host), "");
      if (options.all) done(null, permitted);
      else done(null, first.address, first.family);
    });
  };
}

function refusal(host: string): Error {
  return new Error(`${host} is an address to which no events go, unless --webhook-allow-address names it`);
}

/**
 * Addresses at which no receiver can be, but services of the machine or of its cloud: link-local networks, the metadata services of
 * cloud providers, and addresses that name no single host. The forms of IPv6 that lead to an IPv4 address of these are among them.
 */
const REFUSED: readonly (readonly [address: string, prefix: number])[] = [
  ["0.0.0.0", 8],
  ["169.254.0.0", 16],
  ["100.100.100.200", 32],
  ["168.63.129.16", 32],
  ["192.0.0.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  ["::", 128],
  ["fe80::", 10],
  ["ff00::", 8],
  ["fd00:ec2::", 32],
  ["fd20:ce::", 32],
  ["64:ff9b::a9fe:0", 112],
  ["64:ff9b::6464:64c8", 128],
  ["64:ff9b::a83f:8110", 128],
  ["2002:a9fe::", 32],
];

/** A network: an address, and how many of its bits count. */
interface Network {
  readonly address: string;
  readonly prefix: number;
}

/** Decides about addresses of receivers. */
export interface AddressGuard {
  /** Whether requests may go to an IP address. */
  permits(address: string): boolean;
}

/** Creates a guard. @param allowed networks that are permitted although they are refused by default. */
export function createAddressGuard(allowed: readonly Network[] = []): AddressGuard {
  const refused = listOf(REFUSED.map(([address, prefix]) => ({ address, prefix })));
  const permitted = listOf(allowed);
  return {
    permits(address) {
      const family = familyOf(address);
      return permitted.check(address, family) || !refused.check(address, family);
    },
  };
}

function listOf(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const { address, prefix } of networks) list.addSubnet(address, prefix, familyOf(address));
  return list;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
