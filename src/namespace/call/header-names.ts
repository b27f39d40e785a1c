/**
 * Headers that belong to a connection, a message, a proxy or the gateway. Nothing forwards them, and no entry of a
 * context replaces one.
 */
const OWN =
  /^(?::.*|accept|accept-encoding|connection|content-.*|cookie|expect|forwarded|grpc-.*|host|http2-settings|keep-alive|proxy-.*|range|sec-.*|set-cookie|te|trailer|transfer-encoding|upgrade|x-forwarded-.*|x-request-id|x-request-timeout-ms)$/;

/** Headers by which a client names a database, the first one before the second; each may have a `…-prefix` beside it. */
export const DATABASE_HEADERS = ["x-service-database", "x-lancedb-database"] as const;

const NONE: ReadonlySet<string> = new Set();

/**
 * Returns a test, for lower-case names, of the headers that the gateway does not forward, including those that
 * `connection` names.
 */
export function endsHere(headers: Readonly<Record<string, string>>): (name: string) => boolean {
  const named = namedByConnection(headers["connection"]);
  return (name) => OWN.test(name) || named.has(name);
}

function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  // Nearly every client sends exactly this, and the name is in the list above.
  if (connection === undefined || connection === "keep-alive") return NONE;
  return new Set(
    connection
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );
}
