import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { LOCAL_REGION } from "../../namespace/call/database-context.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { isLoopbackAddress } from "../../runtime/loopback.ts";
import { hostOf } from "../../wires/rest/http.ts";
import { isConsolePath } from "./console-pages.ts";
import { isProbe, pathOf, refuse } from "./refusals.ts";

/** Pages without side effects, to which other pages may link, beside those of the console. */
const PAGES: ReadonlySet<string> = new Set(["/metrics", "/openapi.json", "/docs"]);

/** Whether a path is a page without side effects. */
function isPage(path: string): boolean {
  return PAGES.has(path) || isConsolePath(path);
}

/** Options of {@link addBrowserGuard}. */
export interface BrowserGuardOptions {
  readonly hosts: HostCheck;
  /** Origins whose pages may call; `*` matches any. */
  readonly origins: readonly string[];
  /** Called for refused requests. */
  readonly refused?: NoteRefusal | undefined;
}

/** Why a request is refused: its host is not served here, or a page of another site makes a browser send it. */
type Fault = "host" | "origin";

/**
 * Adds the hook that refuses requests which a page of another site makes a browser send, and requests for a host that
 * is not served here (docs/adr/0037). Programs other than browsers send only the host among the headers that it
 * checks.
 */
export function addBrowserGuard(
  app: FastifyInstance,
  { hosts, origins, refused }: BrowserGuardOptions,
): void {
  const isForeign = createOriginCheck(origins);

  function faultOf(headers: IncomingHttpHeaders): Fault | undefined {
    const host = hostOf(headers);
    if (!hosts.serves(host)) return "host";
    return isForeign(headers, host) ? "origin" : undefined;
  }

  app.addHook("onRequest", (request, _reply, next) => {
    const { headers } = request.raw;
    const fault = faultOf(headers);
    if (fault === undefined || isProbe(request)) return next();
    if (fault === "origin" && isPage(pathOf(request))) return next();
    next(refuse(request, fault === "host" ? foreignHost(hostOf(headers)) : foreignPage(), refused));
  });
}

function foreignHost(host = ""): LanceError {
  return new LanceError(
    "PermissionDenied",
    `the host ${JSON.stringify(host)} is not served here; --allowed-host adds one`,
  );
}

function foreignPage(): LanceError {
  return new LanceError(
    "PermissionDenied",
    "a page of another origin must not call; --cors-origin names the origins that may",
  );
}

type OriginCheck = (headers: IncomingHttpHeaders, host: string | undefined) => boolean;

/**
 * Creates the check whether a page of another origin makes the request and may not call. Browsers reveal the origin
 * in `sec-fetch-site`; older ones send `origin` with everything except plain links, images and the like.
 */
function createOriginCheck(origins: readonly string[]): OriginCheck {
  if (origins.includes("*")) return () => false;
  const allowed = new Set(origins);
  return (headers, host) => {
    const { origin } = headers;
    if (origin !== undefined && allowed.has(origin)) return false;
    const site = headers["sec-fetch-site"];
    if (site !== undefined) return site !== "same-origin" && site !== "none";
    return origin !== undefined && (host === undefined || URL.parse(origin)?.host !== host.toLowerCase());
  };
}

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
