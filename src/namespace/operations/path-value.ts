import { LanceError } from "../errors.ts";

const SEPARATOR = String.raw`(?:[/\\]|%2f|%5c)`;

/** A segment of dots, also percent-encoded, and also with the parameters that some servers cut off (`..;a=b`). */
const DOT_SEGMENT = new RegExp(`(?:^|${SEPARATOR})(?:\\.|%2e)+(?:;.*?)?(?:$|${SEPARATOR})`, "is");

/**
 * Whether a value, once it is in a path, contains a segment that URL parsers and proxies fold away: `/index/../drop`
 * becomes `/drop`, which is another operation (docs/adr/0037).
 */
export function hasDotSegment(value: string): boolean {
  // Most values have neither character, and every call has several values.
  return (value.includes(".") || value.includes("%")) && DOT_SEGMENT.test(value);
}

/**
 * Checks a value that a path carries.
 *
 * @throws LanceError InvalidInput for a value with a segment of dots.
 */
export function checkPathValue(value: string, field: string): void {
  if (!hasDotSegment(value)) return;
  throw new LanceError(
    "InvalidInput",
    `field "${field}" must not be dots alone, or have such a part: ${JSON.stringify(value)}`,
  );
}
