/** A head without anything that RFC 9112 only tolerates: folded lines, bare CR or LF, blanks before a colon. */
const HEAD =
  /^HTTP\/1\.1 [2-5]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+.^_`|~\dA-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
const LENGTH = /^\d{1,15}$/;
const KEEP_ALIVE = /timeout=(\d{1,9})/;
/** Headers that give a body another end, or the connection another use. */
const SPECIAL: ReadonlySet<string> = new Set(["transfer-encoding", "upgrade", "trailer"]);
/** Headers that most answers have, as servers spell them: making the texts of the names for each answer takes longer. */
const USUAL: ReadonlyMap<string, string> = new Map(
  [
    ...["connection", "content-length", "content-type", "date", "etag", "keep-alive", "server", "vary"],
    ...["cache-control", "x-request-id"],
  ].flatMap((name) =>
    [name, name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())].map((spelt) => [spelt, name]),
  ),
);
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 304]);

/**
 * Reads the head of an answer that leaves no doubt about its end: a final status, one length, a connection that stays open, no
 * header twice, no blank at the end of a line. It is much stricter than HTTP, because undici reads every answer that is refused here.
 *
 * @param text the bytes in Latin-1, up to the empty line and without it
 * @returns the headers by lower-case name, the bytes of the body, and how long the server keeps an idle connection, in milliseconds, if
 *   it says so; undefined for any other head
 */
export function readPlainHead(text: string) {
  if (!HEAD.test(text)) return undefined;
  const status = Number(text.slice(9, 12));
  const headers: Record<string, string> = {};
  for (let at = text.indexOf("\r\n") + 2; at < text.length; ) {
    const end = text.indexOf("\r\n", at);
    const colon = text.indexOf(":", at);
    const spelt = text.slice(at, colon);
    const usual = USUAL.get(spelt);
    const name = usual ?? spelt.toLowerCase();
    if (name in headers || (usual === undefined && SPECIAL.has(name))) return undefined;
    let from = colon + 1;
    while (isBlank(text, from)) from += 1;
    if (from < end && isBlank(text, end - 1)) return undefined;
    headers[name] = text.slice(from, end);
    at = end + 2;
  }
  const { connection, "content-length": length } = headers;
  if (connection !== undefined && connection.toLowerCase() !== "keep-alive") return undefined;
  const isEmpty = WITHOUT_BODY.has(status);
  if (isEmpty ? (length ?? "0") !== "0" : !LENGTH.test(length ?? "")) return undefined;
  const seconds = KEEP_ALIVE.exec(headers["keep-alive"] ?? "")?.[1];
  const keepAliveMs = seconds === undefined ? undefined : Number(seconds) * 1000;
  return { status, headers, length: isEmpty ? 0 : Number(length), keepAliveMs };
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 0x20 || code === 0x09;
}
