import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance } from "fastify";
import { LanceError } from "../../namespace/errors.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { hostOf } from "../../wires/rest/http.ts";
import { isConsolePath } from "./console-pages.ts";
import type { HostCheck } from "./host-check.ts";
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
