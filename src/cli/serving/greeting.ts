import type { AddressInfo } from "node:net";
import type { Databases } from "../../config/configuration.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import type { Gateway } from "../../gateway/compose.ts";
import { DOCUMENTATION, packageVersion } from "../../runtime/package-files.ts";
import { placeOf } from "../place.ts";

/** Name of the service. Its descriptor would take 4 MiB of a thread that only supervises workers. */
const SERVICE = "lance.namespace.v1.LanceNamespaceService";

/** Facts of a start that not every greeting has. */
export interface GreetingFacts {
  /** Address of the server for operators. */
  readonly admin?: AddressInfo | undefined;
  /** Directories that did not exist before. Default: none. */
  readonly created?: readonly string[];
  /** Whether to name the pages for people. Default: false. */
  readonly links?: boolean;
}

/** Returns the first lines for people: what is served, where, and for whom. */
export function greeting(
  options: ServeOptions,
  databases: Databases | undefined,
  gateway: Gateway,
  { admin, created = [], links = false }: GreetingFacts = {},
): string {
  return [
    `Lance Gateway ${packageVersion()} serves ${whatIsServed(options, databases)}`,
    ...created.map((root) => `  new       ${root} did not exist, and has been created`),
    ...(options.socketPath === undefined ? placesOnPort(options, gateway) : placesOnSocket(options, gateway)),
    ...(admin === undefined
      ? []
      : [`  admin     ${admin.family === "unix" ? "unix:" : "http://"}${authorityOf(admin)}`]),
    ...(links ? pages(options, gateway) : []),
    forWhom(options),
    ...gateway.readOnly.map((reason) => `  for reading only: ${reason}`),
    "",
  ].join("\n");
}

function authorityOf({ address, family, port }: AddressInfo): string {
  if (family === "unix") return address;
  return family === "IPv6" ? `[${address}]:${port}` : `${address}:${port}`;
}

function originOf({ tlsCert }: ServeOptions, gateway: Gateway): string {
  return `${tlsCert === undefined ? "http" : "https"}://${authorityOf(gateway.address)}`;
}

/** Returns the addresses of the pages for people, and of the endpoint for their agents; a browser reaches none on a socket. */
function pages(options: ServeOptions, gateway: Gateway): string[] {
  const manual = `  manual    ${DOCUMENTATION}`;
  if (options.socketPath !== undefined) return [manual];
  const origin = originOf(options, gateway);
  return [
    ...(options.noConsole ? [] : [`  console   ${origin}/console/`]),
    ...(options.noDocs ? [] : [`  API page  ${origin}/docs`]),
    ...(options.noMcp ? [] : [`  agents    ${origin}/mcp`]),
    manual,
  ];
}

function placesOnPort(options: ServeOptions, gateway: Gateway): string[] {
  const isPlain = options.tlsCert === undefined;
  const authority = authorityOf(gateway.address);
  const origin = originOf(options, gateway);
  const rpc = `${origin}/${SERVICE}/`;
  return [
    `  REST      ${origin}/v1`,
    `  gRPC      ${authority} (HTTP/2 ${isPlain ? "without" : "with"} TLS)`,
    `  Connect   ${rpc}`,
    `  gRPC-Web  ${rpc}`,
  ];
}

function placesOnSocket({ tlsCert }: ServeOptions, { address: { address } }: Gateway): string[] {
  return [
    `  unix:${address} (REST, gRPC, Connect and gRPC-Web, ${tlsCert === undefined ? "without" : "with"} TLS)`,
  ];
}

/** Credentials by the way in which callers prove who they are. */
const CREDENTIALS: Readonly<Record<ServeOptions["auth"][number], string>> = {
  "api-key": "an API key",
  oidc: "a token",
  kubernetes: "a token of a service account",
  mtls: "a client certificate",
};

function forWhom({ auth, socketPath }: ServeOptions): string {
  if (auth.length > 0) return `  for callers with ${auth.map((way) => CREDENTIALS[way]).join(" or ")}`;
  const place = socketPath === undefined ? "the port" : "the socket";
  return `  open: everyone who reaches ${place} may do everything (docs/security.md)`;
}

/** The text for the catalog that is served in the first line. */
function whatIsServed(options: ServeOptions, databases: Databases | undefined): string {
  if (databases === undefined) return placeOf(options);
  const named = [...databases.byName].map(([name, own]) => `${name} (${placeOf(own)})`);
  return `the databases ${named.join(", ")}`;
}
