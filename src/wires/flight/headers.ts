import { DATABASE_HEADERS } from "../../namespace/call/headers.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, parseIdentifier } from "../../namespace/identifier.ts";

/** Metadata of a Flight call, as a call of the pipeline has it. */
export interface FlightHeaders {
  readonly headers: Record<string, string>;
  /** Namespace that the names of tables begin from. */
  readonly namespacePath: Identifier;
}

/** Headers that describe the Flight call itself, and not the calls that it makes. */
const OWN =
  /^(?:content-.*|grpc-.*|te|trailer|accept.*|idempotency-key|auth-token-bin|database|namespace-path)$/;

const SCHEME = /^(basic|bearer) +(\S.*)$/i;

/** How the gateway's own API keys begin. */
const KEY_PREFIX = "lgw_";

/** The root, as LanceDB's clients call it in SQL, and as schemas of SQL do. */
export const ROOT_NAME = "public";

/**
 * Reads the metadata of a Flight call.
 *
 * Clients of Flight know `authorization` only, so that an API key may be the password of the scheme Basic or the token of Bearer. `database` names
 * the database, and `namespace-path` the namespace of the names in the call, joined by `$`; `public` is the root.
 *
 * @throws LanceError InvalidInput for a path that is not one, Unauthenticated for Basic without a password
 */
export function readFlightHeaders(metadata: Readonly<Record<string, string>>): FlightHeaders {
  const headers: Record<string, string> = Object.create(null);
  for (const name in metadata) if (!OWN.test(name)) headers[name] = metadata[name] as string;
  const token = tokenIn(metadata);
  if (token !== undefined) setToken(headers, token);
  const { database } = metadata;
  if (database && DATABASE_HEADERS.every((name) => !headers[name])) headers[DATABASE_HEADERS[0]] = database;
  const path = metadata["namespace-path"] ?? "";
  return { headers, namespacePath: path === ROOT_NAME ? [] : parseIdentifier(path) };
}

/** Puts a token where the pipeline looks for credentials of its kind. */
function setToken(headers: Record<string, string>, token: string): void {
  if (token.startsWith(KEY_PREFIX)) {
    headers["x-api-key"] ??= token;
    delete headers["authorization"];
  } else {
    headers["authorization"] = `Bearer ${token}`;
  }
}

/** Returns the token that metadata carries: of Bearer, the password of Basic, or that of a handshake. */
export function tokenIn(metadata: Readonly<Record<string, string>>): string | undefined {
  const [, scheme = "", value = ""] = SCHEME.exec(metadata["authorization"] ?? "") ?? [];
  if (scheme.toLowerCase() === "bearer") return value;
  if (scheme.toLowerCase() === "basic") {
    const text = Buffer.from(value, "base64").toString();
    return requirePassword(text.slice(text.indexOf(":") + 1 || text.length));
  }
  const given = metadata["auth-token-bin"];
  return given === undefined ? undefined : Buffer.from(given, "base64").toString();
}

/** @throws LanceError Unauthenticated, for a password that no header can carry */
export function requirePassword(password: string): string {
  if (/^[\x21-\x7e]+$/.test(password)) return password;
  throw new LanceError("Unauthenticated", "the password must be an API key or a token");
}
