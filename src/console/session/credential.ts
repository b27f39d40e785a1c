import type { Issuer } from "./issuer.ts";

/** How a caller proves who it is. */
export interface Credential {
  readonly kind: "api-key" | "token";
  readonly secret: string;
  /** Issuer that has given it and gives another one. Default: the caller has brought it. */
  readonly issuer?: Issuer | undefined;
}

/** Facts that every call brings along. */
export interface Session {
  /** Default: calls bring no credential. */
  readonly credential?: Credential | undefined;
  /** Database of the calls. Default: the one that the gateway chooses. */
  readonly database?: string | undefined;
}

const KEY = "lance-gateway";
const ACCEPTED = "lance-gateway-accepted";

/** Returns the headers of every call of a session. */
export function headersOf({ credential, database }: Session): Record<string, string> {
  const headers: Record<string, string> = {};
  if (credential?.kind === "api-key") headers["x-api-key"] = credential.secret;
  if (credential?.kind === "token") headers["authorization"] = `Bearer ${credential.secret}`;
  if (database) headers["x-service-database"] = database;
  return headers;
}

/** Returns the session that this tab keeps, if it keeps one. */
export function storedSession(storage: Pick<Storage, "getItem">): Session {
  try {
    const found: unknown = JSON.parse(storage.getItem(KEY) ?? "{}");
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {};
  }
}

/** Keeps a session until the tab closes. */
export function storeSession(storage: Pick<Storage, "setItem">, session: Session): void {
  storage.setItem(KEY, JSON.stringify(session));
}

/** Notes that the gateway has accepted the credential of the kept session. */
export function noteAccepted(storage: Pick<Storage, "setItem">, { credential }: Session): void {
  if (credential?.issuer !== undefined) storage.setItem(ACCEPTED, credential.secret);
}

/**
 * Returns the issuer to sign in at again when the gateway refuses a credential that it has accepted before; undefined if
 * that would not help. It answers once for each credential.
 */
export function takeExpired(
  storage: Pick<Storage, "getItem" | "removeItem">,
  { credential }: Session,
): Issuer | undefined {
  if (credential === undefined || storage.getItem(ACCEPTED) !== credential.secret) return undefined;
  storage.removeItem(ACCEPTED);
  return credential.issuer;
}
