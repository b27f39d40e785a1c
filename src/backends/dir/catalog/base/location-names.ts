import { isAbsolute, relative, resolve, sep } from "node:path";
import { LanceError } from "../../../../namespace/errors.ts";
import {
  DEFAULT_DELIMITER,
  type Identifier,
  isNewName,
  joinIdentifier,
} from "../../../../namespace/identifier.ts";
import { drawCharacters } from "../../../../runtime/text.ts";
import { MANIFEST_NAME } from "../manifest/manifest-table.ts";

/** Draws the name of a new table's directory: its own name in the root, a random prefix and the id elsewhere. */
export function newLocation(id: Identifier): string {
  return id.length === 1 ? rootLocation(id) : uniqueLocation(id);
}

/** Returns the location of a table of the root namespace in the public layout. */
export function rootLocation(id: Identifier): string {
  return `${id[0]}.lance`;
}

/** Returns the name of the table at a location in the root, the inverse of {@link rootLocation}. */
export function rootName(location: string): string {
  return location.slice(0, -".lance".length);
}

/** Whether implementations that list directories treat a location as a table of the root namespace. */
export function isRootDirectory(location: string): boolean {
  return /^[^/]+\.lance$/.test(location);
}

/**
 * Number of random characters before an identifier. More would not fit into the name of a directory
 * beside the longest identifier.
 */
const RANDOM_CHARACTERS = 14;

/** Names that are drawn here, and by other implementations, which draw 8 hexadecimal digits. Names of the root may begin alike. */
const DRAWN = new RegExp(`^(?:[0-9a-v]{${RANDOM_CHARACTERS}}|[0-9a-f]{8})_`);

/** Whether a table may follow another one at a location: it is the usual one of a name, or a client has chosen it. */
export function recurs(location: string): boolean {
  return isRootDirectory(location) || !DRAWN.test(location);
}

/** Creates a location that no other table has or has had (docs/adr/0009). */
export function uniqueLocation(id: Identifier): string {
  return `${drawCharacters(RANDOM_CHARACTERS)}_${joinIdentifier(id)}`;
}

/** Whether a relative location stays below a directory. */
export function staysInside(directory: string, location: string): boolean {
  const path = resolve(directory, location);
  return (
    !isAbsolute(location) && !location.includes("://") && path !== directory && isInside(directory, path)
  );
}

/** Whether a path is a directory or something inside it. */
export function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}

/** Forms of refused locations, with their rules in the words of Lance's own directory catalog. The first match counts. */
const RULES: readonly (readonly [broken: RegExp, rule: string])[] = [
  [/^(?:[\\/]|[A-Za-z]:[\\/])/, "Absolute paths are not allowed"],
  [/^[A-Za-z][A-Za-z0-9+.-]*:\//, "Absolute URIs are not allowed"],
  [/(?:^|[\\/])\.\.(?:[\\/]|$)/, "Path traversal is not allowed"],
  [/^(?:\.\/)*__manifest(?:\/|$)/, "The manifest of the catalog is not allowed"],
  [/(?:^|\/)\./, "Names that begin with a dot are not allowed"],
  [/(?:^|\/)(?:\/|$)/, "Empty names are not allowed"],
];

/** The beginning of a URI. */
const URI = /^[a-z][a-z0-9+.-]*:\//i;

/**
 * Checks a location that a client requests for a table.
 *
 * @throws LanceError InvalidInput, unless it is a plain relative path that stays below the base.
 */
export function checkNewLocation(location: string): void {
  const parts = location.split("/");
  // The location of a table in a namespace has the delimiter of its identifier.
  const plain = parts.every((part) => isNewName(part.replaceAll(DEFAULT_DELIMITER, "_")));
  if (
    plain &&
    !URI.test(location) &&
    parts[0] !== MANIFEST_NAME &&
    !parts.some((part) => part.startsWith("."))
  )
    return;
  throw refusedLocation(location);
}

/** Creates the error for a refused location; it says which rule the location breaks. */
export function refusedLocation(location: string): LanceError {
  const texts = [location, decoded(location)];
  const [, rule = "Names that a table must not have are not allowed"] =
    RULES.find(([broken]) => texts.some((text) => broken.test(text))) ?? [];
  const must = "Location must be a relative path within the root directory";
  return new LanceError("InvalidInput", `${rule}. ${must}: ${JSON.stringify(location)}`);
}

/** Returns the location as a reader sees it that decodes percent-encoding. */
export function decoded(location: string): string {
  try {
    return decodeURIComponent(location);
  } catch {
    return location;
  }
}

/** Another caller has taken the location that was chosen for a new table. */
export class LocationTaken extends LanceError {
  constructor() {
    super("ConcurrentModification", "the location of a table was taken meanwhile; try again");
  }
}
