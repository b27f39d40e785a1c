import { LanceError } from "../../../namespace/errors.ts";
import { hasDotSegment } from "../../../namespace/operations/template.ts";
import { drawCharacters } from "../../../runtime/text/draw-characters.ts";

/** Longest location, in characters. */
const MAX_LENGTH = 2_048;

const ABSOLUTE = /^(?:[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]*)?\/[^/]|^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+\/?$/;
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** Returns what is wrong with a location; undefined for an absolute path or URI without dot segments, credentials and query. */
export function faultOf(location: string): string | undefined {
  if (location.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (CONTROL.test(location)) return "contains a control character";
  if (!ABSOLUTE.test(location)) return "is not an absolute path or a URI such as s3://bucket/prefix";
  if (location.includes("?") || location.includes("#")) return "has a query or a fragment";
  const path = location.replace(/^[a-z][a-z0-9+.-]*:\/\//, "");
  return hasDotSegment(path) ? "has a part of dots alone" : undefined;
}

/**
 * Checks the location that a client gives for a new entry.
 *
 * @throws LanceError InvalidInput
 */
export function checkLocation(location: string): void {
  const fault = faultOf(location);
  if (fault !== undefined)
    throw new LanceError("InvalidInput", `location ${JSON.stringify(location)} ${fault}`);
}

/** Number of random characters before the name of a table (docs/adr/0009). */
const RANDOM_CHARACTERS = 14;

/**
 * Draws a location for a table in a folder that no other table has or has had: a table that was renamed or deregistered keeps its
 * location, and an entry that pointed there by its name would show the rows of that table.
 */
export function drawLocation(folder: string, table: string): string {
  return below(folder, `${drawCharacters(RANDOM_CHARACTERS)}_${table}`);
}

/** Returns the location of a name in a folder. */
export function below(folder: string, ...names: readonly string[]): string {
  return [folder.replace(/\/+$/, ""), ...names].join("/");
}
