/** Returns a path without the slashes at its end. It looks at slashes within the path once, however many are in a row. */
export function withoutEndSlashes(path: string): string {
  return path.replace(/(?<!\/)\/+$/, "");
}
