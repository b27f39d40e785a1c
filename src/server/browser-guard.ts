import type { FastifyInstance, FastifyRequest } from "fastify";
import { LanceError } from "../namespace/errors.ts";
import type { NoteRefusal } from "../pipeline/refusals.ts";
import type { HostCheck } from "./host-check.ts";
import { isProbe, pathOf, refuse } from "./refusals.ts";

/** Pages that only show something; links on other pages may lead there. */
const PAGES: ReadonlySet<string> = new Set(["/metrics"]);

/** What {@link addBrowserGuard} needs. */
export interface BrowserGuardOptions {
  readonly hosts: HostCheck;
  /** The origins whose pages may call; `*` stands for any. */
  readonly origins: readonly string[];
  /** Is told of what is refused. */
  readonly refused?: NoteRefusal | undefined;
}

/**
 * Adds the hook that refuses requests that a page of another site makes a browser send, and requests for a host that is
 * not served here (docs/adr/0037). Programs that are no browsers send none of the headers that this looks at, but for
 * the host.
 */
export function addBrowserGuard(
  app: FastifyInstance,
  { hosts, origins, refused }: BrowserGuardOptions,
): void {
  const isForeign = createOriginCheck(origins);

  app.addHook("onRequest", (request, _reply, next) => {
    const host = hostOf(request);
    const isServed = hosts.serves(host);
    if (isServed && !isForeign(request, host)) return next();
    if (isProbe(request) || (isServed && PAGES.has(pathOf(request)))) return next();
    next(refuse(request, isServed ? foreignPage() : foreignHost(host), refused));
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

/** The host and port that a request is for, if it says so. */
function hostOf({ raw: { headers } }: FastifyRequest): string | undefined {
  return (headers[":authority"] as string | undefined) ?? headers.host;
}

type OriginCheck = (request: FastifyRequest, host: string | undefined) => boolean;

/**
 * Tells whether a request is made by a page of another origin that may not call. Browsers say so in `sec-fetch-site`;
 * those that do not know it send `origin` with everything but plain links, images and the like.
 */
function createOriginCheck(origins: readonly string[]): OriginCheck {
  if (origins.includes("*")) return () => false;
  const allowed = new Set(origins);
  return ({ raw: { headers } }, host) => {
    const { origin } = headers;
    if (origin !== undefined && allowed.has(origin)) return false;
    const site = headers["sec-fetch-site"];
    if (site !== undefined) return site !== "same-origin" && site !== "none";
    return origin !== undefined && (host === undefined || URL.parse(origin)?.host !== host.toLowerCase());
  };
}
