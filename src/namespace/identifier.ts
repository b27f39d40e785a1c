import { LanceError } from "./errors.ts";
import { hasDotSegment } from "./path-value.ts";

/**
 * The names of an object from the root downwards; the root itself is the empty list.
 * It is parsed once, and what is authorized is what is executed.
 */
export type Identifier = readonly string[];

/** The delimiter where a request names none, and always the one inside the directory format. */
export const DEFAULT_DELIMITER = "$";

/** The longest identifier, joined with the delimiter, in bytes: it has to fit a directory's name with a hash. */
export const MAX_IDENTIFIER_BYTES = 240;

/** The deepest identifier, in names. */
export const MAX_IDENTIFIER_DEPTH = 32;

/** The longest delimiter, in characters: an answer may have it between any two names. */
export const MAX_DELIMITER_LENGTH = 32;

const NAME = /^[A-Za-z0-9_.-]+$/;
const ONLY_DOTS = /^\.+$/;

/**
 * Splits the string form of an identifier.
 *
 * The root is the delimiter alone or the empty string. An empty name, as in `a$$b`, is refused rather than
 * dropped, so that one object has one spelling.
 *
 * @throws LanceError InvalidInput, when a name is empty, the identifier is too long or too deep, or the delimiter is none.
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
 * Names that new objects may not have are accepted here, because another implementation may have created
 * them; a name with the format's own delimiter is not, because it would alias a nested object, and neither is one of
 * dots alone, because a path that carries it leads elsewhere.
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
 * Checks a name that is about to be created: letters, digits, `_`, `-` and `.`, and not dots alone.
 *
 * @throws LanceError InvalidInput
 */
export function checkNewName(name: string): void {
  if (NAME.test(name) && !ONLY_DOTS.test(name)) return;
  throw new LanceError(
    "InvalidInput",
    `name ${JSON.stringify(name)} may have only letters, digits, "_", "-" and ".", and not dots alone`,
  );
}

/** The string form of an identifier; the root is the delimiter itself, as in a REST path. */
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
