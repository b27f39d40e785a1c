import { lookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import type { AddressGuard } from "./addresses.ts";

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
