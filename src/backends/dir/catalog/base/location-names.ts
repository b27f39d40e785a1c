import { isAbsolute, relative, resolve, sep } from "node:path";
import { type Identifier, joinIdentifier } from "../../../../namespace/identifier.ts";
import { drawCharacters } from "../../../../runtime/text/draw-characters.ts";

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
