const MASK = "***";

/** A shorter text would match everywhere. */
const MIN_SECRET_LENGTH = 6;

const URL_START = "\\b[a-z][a-z0-9+.-]*:\\/\\/";
const SECRET_NAME =
  "[\\w-]*(?:authorization|api[-_]?key|access[-_]?key|account[-_]?key|secret|password|passwd|token|signature|credential|cookie)[\\w-]*";

/** Patterns of credentials, and the part of each match that stays. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // The query of a signed URL is a credential.
  [new RegExp(`(${URL_START}[^\\s?"'<>]*)\\?[^\\s"'<>]*`, "gi"), `$1?${MASK}`],
  [new RegExp(`(${URL_START})[^\\s/?#"'@]*@`, "gi"), `$1${MASK}@`],
  [/\b(Bearer|Basic|Digest|Negotiate|SharedKey|AWS4-HMAC-SHA256) +[^\s"',;]+/g, `$1 ${MASK}`],
  [
    new RegExp(
      `\\b(${SECRET_NAME}\\\\?["']?\\s*[:=]\\s*)("[^"]*"|'[^']*'|(?:Bearer |Basic )?[^\\s,;&"']+)`,
      "gi",
    ),
    `$1${MASK}`,
  ],
];

/** Replaces credentials in a text: those that look like one, and the given ones wherever they appear. */
export function redactText(text: string, secrets: Iterable<string> = []): string {
  let redacted = text;
  for (const secret of secrets) {
    if (secret.length >= MIN_SECRET_LENGTH) redacted = redacted.replaceAll(secret, MASK);
  }
  for (const [pattern, replacement] of PATTERNS) redacted = redacted.replaceAll(pattern, replacement);
  return redacted;
}
