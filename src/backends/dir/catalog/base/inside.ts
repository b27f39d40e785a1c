import { isAbsolute, relative, resolve, sep } from "node:path";

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
