import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Endpoint } from "./resilience.ts";

/** Interval between lookups of a host, and the shortest interval while connections fail, in milliseconds. */
const LOOKUP_MS = 30_000;
const LOOKUP_AFTER_FAILURE_MS = 1_000;

/** A configured address of an upstream. */
export interface Place {
  /** Address as configured; all are distinct. */
  readonly address: string;
  /** Name in the log. */
  readonly name: string;
  /** Host to look up; undefined if the address has no host name. */
  readonly host: string | undefined;
}

/** Options of {@link followHosts}. */
export interface FollowOptions<T> {
  readonly places: readonly Place[];
  /** Opens a target for calls. Without addresses, each new connection looks the host up itself. */
  open(place: Place, addresses?: readonly HostAddress[]): T;
  /** Closes a target after its calls have ended. */
  drain(target: T): Promise<void>;
  close(target: T): Promise<void>;
  /** Default: the system. */
  readonly resolveHost?: ResolveHost | undefined;
}

/** The servers of an upstream: a target for each server of each configured address. */
export interface FollowedHosts<T> {
  readonly endpoints: readonly Endpoint<T>[];
  /** Passes the endpoints on whenever they change. */
  watch(onChange: (endpoints: readonly Endpoint<T>[]) => void): void;
  /** Reports that a server cannot be reached: it may have moved. */
  onUnreached(): void;
  close(): Promise<void>;
}

/**
 * Opens the servers. A host with a single address has a single target, whose connections look the address up again. A
 * host with several addresses has a target for each, and they follow DNS.
 */
export function followHosts<T>(options: FollowOptions<T>): FollowedHosts<T> {
  const { places, resolveHost = resolveBySystem } = options;
  const draining = new Set<T>();
  let onChange: (endpoints: readonly Endpoint<T>[]) => void = () => {};
  let lookedUpAt = Number.NEGATIVE_INFINITY;
  let isLookingUp = false;
  let closed = false;
  let endpoints: ReadonlyMap<string, Endpoint<T>> = new Map(
    places.map((place) => [place.address, { target: options.open(place), name: place.name }]),
  );

  /** Runs a single lookup at a time: a resolver that hangs would accumulate them, and two would open servers twice. */
  async function lookUp(): Promise<void> {
    if (isLookingUp) return;
    isLookingUp = true;
    try {
      await follow();
    } catch {
      // Nothing waits for this lookup; the next one is soon.
    } finally {
      lookedUpAt = performance.now();
      isLookingUp = false;
    }
  }

  async function follow(): Promise<void> {
    const found = await Promise.all(places.map(endpointsOf));
    if (closed) return;
    const next = new Map(found.flat());
    const gone = [...endpoints].filter(([key]) => !next.has(key));
    const changed = gone.length > 0 || next.size !== endpoints.size;
    endpoints = next;
    if (!changed) return;
    onChange([...endpoints.values()]);
    for (const [, { target }] of gone) retire(target);
  }

  async function endpointsOf(place: Place): Promise<readonly [string, Endpoint<T>][]> {
    const { address, name, host } = place;
    const servers = host === undefined ? [] : serversOf(await resolveHost(host).catch(() => []));
    // An empty result does not replace the known servers.
    if (servers.length === 0) {
      return [...endpoints].filter(([key]) => key === address || key.startsWith(`${address} `));
    }
    if (servers.length === 1) {
      return [[address, endpoints.get(address) ?? { target: options.open(place), name }]];
    }
    return servers.map((addresses) => {
      const names = addresses.map((each) => each.address).join(" ");
      const key = `${address} ${names}`;
      const known = endpoints.get(key);
      return [key, known ?? { target: options.open(place, addresses), name: `${name} (${names})` }];
    });
  }

  function retire(target: T): void {
    draining.add(target);
    const drained = () => draining.delete(target);
    options.drain(target).then(drained, drained);
  }

  const named = places.some(({ host }) => host !== undefined);
  const timer = named ? setInterval(() => void lookUp(), LOOKUP_MS).unref() : undefined;
  if (named) void lookUp();

  return {
    get endpoints() {
      return [...endpoints.values()];
    },
    watch(listener) {
      onChange = listener;
    },
    onUnreached() {
      if (named && performance.now() - lookedUpAt > LOOKUP_AFTER_FAILURE_MS) void lookUp();
    },
    async close() {
      closed = true;
      clearInterval(timer);
      const open = [...endpoints.values()].map(({ target }) => target);
      await Promise.all([...open, ...draining].map((target) => options.close(target)));
    },
  };
}

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
const resolveBySystem: ResolveHost = (host) => lookup(host, { all: true });

/** Whether a host is a name, whose addresses may change. */
export function isName(host: string): boolean {
  return isIP(host.replace(/^\[|\]$/g, "")) === 0;
}

/**
 * Groups addresses by the server to which they presumably lead: a server has an address of each family, and a
 * connection tries both. The order of the answer does not matter, and only the first addresses of very many are used.
 */
function serversOf(addresses: readonly HostAddress[]): readonly (readonly HostAddress[])[] {
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
