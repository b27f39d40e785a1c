const MASK = "***";

/** A shorter text would match everywhere. */
const MIN_SECRET_LENGTH = 6;

/** The rest of a URL from its `://` on. */
const URL_REST = /:\/\/[^\s"'<>]*/g;

/** The user before the host of a URL. */
const URL_USER = /:\/\/[^\s/?#"'@]*@/g;

const SCHEME = /\b(Bearer|Basic|Digest|Negotiate|SharedKey|AWS4-HMAC-SHA256) +[^\s"',;]+/g;

const SECRET_WORD =
  "authorization|api[-_]?key|access[-_]?key|account[-_]?key|secret|password|passwd|token|signature|credential|cookie";

/** A whole name with a secret word in it, what comes between it and its value, and the value. */
const SECRET_VALUE = new RegExp(
  `(?<![\\w-])(?=[\\w-]*(?:${SECRET_WORD}))([\\w-]+\\\\?["']?\\s*[:=]\\s*)("[^"]*"|'[^']*'|(?:Bearer |Basic )?[^\\s,;&"']+)`,
  "gi",
);

/**
 * Replaces credentials in a text: those that look like one, and the given ones wherever they appear.
 *
 * Its time grows with the length of the text and no faster, because callers write parts of the texts: each pattern begins
 * where a name or a URL does, and reads it once.
 */
export function redactText(text: string, secrets: Iterable<string> = []): string {
  let redacted = text;
  for (const secret of secrets) {
    if (secret.length >= MIN_SECRET_LENGTH) redacted = redacted.replaceAll(secret, MASK);
  }
  return redacted
    .replaceAll(URL_REST, withoutQuery)
    .replaceAll(URL_USER, `://${MASK}@`)
    .replaceAll(SCHEME, `$1 ${MASK}`)
    .replaceAll(SECRET_VALUE, `$1${MASK}`);
}

/** The query of a signed URL is a credential. */
function withoutQuery(url: string): string {
  const mark = url.indexOf("?");
  return mark === -1 ? url : `${url.slice(0, mark)}?${MASK}`;
}
