import { LanceError } from "./errors.ts";
import { hasDotSegment } from "./operations/template.ts";

/**
 * Names of an object from the root downwards; the root itself is the empty list. It is parsed once, and the gateway
 * authorizes and executes the parsed form.
 */
export type Identifier = readonly string[];

/** Delimiter if a request names none, and always the delimiter inside the directory format. */
export const DEFAULT_DELIMITER = "$";

/** Longest identifier, joined with the delimiter, in bytes: it must fit into a directory's name with a hash. */
export const MAX_IDENTIFIER_BYTES = 240;

/** Deepest identifier, in names. */
export const MAX_IDENTIFIER_DEPTH = 32;

/** Longest delimiter, in characters: an answer may repeat it between any two names. */
export const MAX_DELIMITER_LENGTH = 32;

/**
 * Rules for the names of new objects: `specification` allows letters, digits, `_`, `-` and `.`, and `unicode` all that
 * {@link isNewName} allows.
 */
export const NAME_RULES = ["specification", "unicode"] as const;

/** A rule for the names of new objects. */
export type NameRule = (typeof NAME_RULES)[number];

const SPECIFIED_NAME = /^[A-Za-z0-9_.-]+$/;
const NAME = /^(?!\s)[^$'*?/\\\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+(?<!\s)$/u;
const ENCODED_SEPARATOR = /%(?:2f|5c)/i;
const ONLY_DOTS = /^\.+$/;

/**
 * Splits the string form of an identifier.
 *
 * The root is the delimiter alone or the empty string. An empty name, as in `a$$b`, is refused instead of dropped, so
 * that an object has a single spelling.
 *
 * @throws LanceError InvalidInput, if a name is empty, the identifier is too long or too deep, or the delimiter is
 *   invalid.
 */
export function parseIdentifier(text: string, delimiter: string = DEFAULT_DELIMITER): Identifier {
  checkDelimiter(delimiter);
  if (text === "" || text === delimiter) return [];
  const names = text.split(delimiter);
  checkIdentifier(names);
  return names;
}

/** @throws LanceError InvalidInput for a delimiter that is empty or too long. */
export function checkDelimiter(delimiter: string): void {
  if (delimiter === "") throw new LanceError("InvalidInput", "delimiter must not be empty");
  if (delimiter.length <= MAX_DELIMITER_LENGTH) return;
  throw new LanceError("InvalidInput", `delimiter is longer than ${MAX_DELIMITER_LENGTH} characters`);
}

/**
 * Checks an identifier that arrived as a list, as in a JSON body.
 *
 * It accepts names that new objects may not have, because another implementation may have created them. It refuses a
 * name with the format's own delimiter, because it would alias a nested object, and a name of dots, because a path
 * that carries it leads elsewhere.
 *
 * @throws LanceError InvalidInput
 */
export function checkIdentifier(names: Identifier): void {
  if (names.length > MAX_IDENTIFIER_DEPTH) {
    throw new LanceError("InvalidInput", `identifier has more than ${MAX_IDENTIFIER_DEPTH} names`);
  }
  let units = names.length - 1;
  for (const name of names) {
    units += name.length;
    if (name === "") throw new LanceError("InvalidInput", `identifier ${quote(names)} has an empty name`);
    if (name.includes(DEFAULT_DELIMITER)) {
      throw new LanceError("InvalidInput", `name ${JSON.stringify(name)} contains the delimiter "$"`);
    }
    if (hasDotSegment(name)) {
      throw new LanceError(
        "InvalidInput",
        `name ${JSON.stringify(name)} must not be dots alone, or have such a part`,
      );
    }
  }
  // A UTF-16 unit takes at most three bytes.
  const canBeLong = units * 3 > MAX_IDENTIFIER_BYTES;
  if (canBeLong && utf8.encode(joinIdentifier(names)).length > MAX_IDENTIFIER_BYTES) {
    throw new LanceError("InvalidInput", `identifier is longer than ${MAX_IDENTIFIER_BYTES} bytes`);
  }
}

/**
 * Checks the name of a new object.
 *
 * @throws LanceError InvalidInput; see {@link isNewName}
 */
export function checkNewName(name: string): void {
  if (isNewName(name)) return;
  throw new LanceError(
    "InvalidInput",
    `name ${JSON.stringify(name)} must not begin or end with a space, be dots alone, or have "$", "*", "?", "/", "\\", "'", "%2f", "%5c" or a control character`,
  );
}

/** Whether the specification allows a name. */
export function isSpecifiedName(name: string): boolean {
  return SPECIFIED_NAME.test(name);
}

/** Returns the error for a name that only the rule `unicode` allows. */
export function unspecifiedName(name: string): LanceError {
  return new LanceError(
    "InvalidInput",
    `name ${JSON.stringify(name)} must have only letters (A-Z, a-z), digits, "_", "-" and "."; --names unicode allows others`,
  );
}

/**
 * Whether a new object may have a name where all of Unicode is allowed: any text without control characters, line separators, halves of surrogate
 * pairs, `$`, `*`, `?`, `'`, `/` and `\`, also percent-encoded, without white space at its ends, and not only dots (docs/adr/0037).
 */
export function isNewName(name: string): boolean {
  return NAME.test(name) && !ENCODED_SEPARATOR.test(name) && !ONLY_DOTS.test(name) && !hasDotSegment(name);
}

/**
 * Returns the names of an object that a part of a request names as a list, as a string or as both.
 *
 * @throws LanceError InvalidInput, if they differ.
 */
export function agreedIdentifier(
  names: Identifier,
  text: string | undefined,
  delimiter: string | undefined,
): Identifier {
  if (text === undefined || text === "") return names;
  const parsed = parseIdentifier(text, delimiter);
  if (names.length === 0 || sameIdentifier(parsed, names)) return parsed;
  throw new LanceError("InvalidInput", `the request names both ${text} and ${JSON.stringify(names)}`);
}

/** Returns the string form of an identifier; the root is the delimiter itself, as in a REST path. */
export function joinIdentifier(names: Identifier, delimiter: string = DEFAULT_DELIMITER): string {
  return names.length === 0 ? delimiter : names.join(delimiter);
}

/** Whether two identifiers name the same object. */
export function sameIdentifier(a: Identifier, b: Identifier): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index]);
}

const utf8 = new TextEncoder();

function quote(names: Identifier): string {
  return JSON.stringify(joinIdentifier(names));
}
