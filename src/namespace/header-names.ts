/**
 * Headers that are a connection's, a message's, a proxy's or the gateway's own. Nothing passes them on, and no entry of
 * a context stands for one.
 */
const OWN =
  /^(?::.*|accept|accept-encoding|connection|content-.*|cookie|expect|forwarded|grpc-.*|host|http2-settings|keep-alive|proxy-.*|sec-.*|set-cookie|te|trailer|transfer-encoding|upgrade|x-forwarded-.*|x-request-id|x-request-timeout-ms)$/;

const NONE: ReadonlySet<string> = new Set();

/** Tells, of lower-case names, which headers of a message end here, those that its `connection` names included. */
export function endsHere(headers: Readonly<Record<string, string>>): (name: string) => boolean {
  const named = namedByConnection(headers["connection"]);
  return (name) => OWN.test(name) || named.has(name);
}

function namedByConnection(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined) return NONE;
  return new Set(
    connection
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );
}
