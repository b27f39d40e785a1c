import type { IncomingMessage } from "node:http";
import { LanceError } from "../namespace/errors.ts";
import { withoutQuery } from "../wires/rest/http.ts";
import type { HostCheck } from "./host-check.ts";
import type { HttpHandler } from "./listener.ts";

/** What {@link withBrowserGuard} needs. */
export interface BrowserGuardOptions {
  readonly hosts: HostCheck;
  /** The origins whose pages may call; `*` stands for any. */
  readonly origins: readonly string[];
  /** Answers a request with an error. */
  readonly refuse: (
    request: IncomingMessage,
    response: Parameters<HttpHandler>[1],
    error: LanceError,
  ) => void;
}

/** Probes come by any name, and say nothing but that the process runs. */
const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

/** Pages that only show something; links on other pages may lead there. */
const PAGES: ReadonlySet<string> = new Set(["/metrics"]);

/**
 * Refuses requests that a page of another site makes a browser send, and requests for a host that is not served here
 * (docs/adr/0037). Programs that are no browsers send none of the headers that this looks at, but for the host.
 */
export function withBrowserGuard(
  handler: HttpHandler,
  { hosts, origins, refuse }: BrowserGuardOptions,
): HttpHandler {
  const isForeign = createOriginCheck(origins);
  return (request, response) => {
    const path = withoutQuery(request.url ?? "");
    const error = PROBES.has(path) ? undefined : refusalOf(request, path);
    if (error === undefined) handler(request, response);
    else refuse(request, response, error);
  };

  function refusalOf(request: IncomingMessage, path: string): LanceError | undefined {
    const host = hostOf(request);
    if (!hosts.serves(host)) {
      return new LanceError(
        "PermissionDenied",
        `the host ${JSON.stringify(host)} is not served here; --allowed-host adds one`,
      );
    }
    if (PAGES.has(path) || !isForeign(request, host)) return undefined;
    return new LanceError(
      "PermissionDenied",
      "a page of another origin must not call; --cors-origin names the origins that may",
    );
  }
}

/** The host and port that a request is for, if it says so. */
function hostOf({ headers }: IncomingMessage): string | undefined {
  return (headers[":authority"] as string | undefined) ?? headers.host;
}

type OriginCheck = (request: IncomingMessage, host: string | undefined) => boolean;

/**
 * Tells whether a request is made by a page of another origin that may not call. Browsers say so in `sec-fetch-site`;
 * those that do not know it send `origin` with everything but plain links, images and the like.
 */
function createOriginCheck(origins: readonly string[]): OriginCheck {
  if (origins.includes("*")) return () => false;
  const allowed = new Set(origins);
  return ({ headers }, host) => {
    const { origin } = headers;
    if (origin !== undefined && allowed.has(origin)) return false;
    const site = headers["sec-fetch-site"];
    if (site !== undefined) return site !== "same-origin" && site !== "none";
    return origin !== undefined && (host === undefined || URL.parse(origin)?.host !== host.toLowerCase());
  };
}
