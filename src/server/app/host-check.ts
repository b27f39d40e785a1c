import { isIP } from "node:net";
import { LOCAL_REGION } from "../../namespace/call/local-region.ts";
import { isLoopbackAddress } from "../../runtime/loopback.ts";

/** Decides which hosts the server serves. */
export interface HostCheck {
  /** Sets the address where the server listens; until then it counts as a loopback address. */
  listensOn(host: string, address: string): void;
  /** Replaces the further hosts that are served. */
  serveAlso(own: readonly string[]): void;
  /**
   * Whether a request for a host is served. IP addresses, `localhost` and all names below it always are, the hosts of LanceDB's
   * region `local`, and a request without a host: a page of another site cannot have them as its own.
   *
   * @param host the host with or without a port, as in a `host` header.
   */
  serves(host: string | undefined): boolean;
}

const WITH_PORT = /^(.*?)(?::\d*)?$/s;

/**
 * Creates the check of hosts. A page can make its own host resolve to any address (DNS rebinding), and a server on
 * loopback often has no other protection.
 *
 * @param allowed names, `*.example.com` for all names below one, or `*` for any. Default: all hosts, unless the
 *   server listens on a loopback address.
 * @param own further hosts that are always served, in the same form.
 */
export function createHostCheck(allowed: readonly string[], own: readonly string[] = []): HostCheck {
  const listening = new Set<string>();
  let served = namesOf([...allowed, ...own]);
  let checks = !served.names.has("*");

  return {
    listensOn(host, address) {
      listening.add(host.toLowerCase());
      if (allowed.length === 0) checks = isLoopbackAddress(address);
    },
    serveAlso(further) {
      served = namesOf([...allowed, ...further]);
    },
    serves(host) {
      if (!checks || host === undefined || host === "") return true;
      const name = nameOf(host);
      const { names, endings } = served;
      if (isAddress(name) || listening.has(name) || names.has(name)) return true;
      return endings.some((ending) => name.endsWith(ending));
    },
  };
}

/** Returns single names, and the endings of the names below others. */
function namesOf(hosts: readonly string[]) {
  const names = new Set(["localhost", ...hosts.map((name) => name.toLowerCase())]);
  return {
    names,
    endings: [".localhost", LOCAL_REGION, ...[...names].filter(isPattern).map((name) => name.slice(1))],
  };
}

function isPattern(name: string): boolean {
  return name.startsWith("*.");
}

function nameOf(host: string): string {
  const name = (WITH_PORT.exec(host)?.[1] ?? host).toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

function isAddress(name: string): boolean {
  return isIP(name.startsWith("[") && name.endsWith("]") ? name.slice(1, -1) : name) !== 0;
}
