/**
 * Returns a location in its plain spelling, without empty parts and single dots. Other programs put rows with any spelling, and two
 * spellings of a directory must be equal: otherwise the drop of one row removes the directory of the other.
 */
export function plainLocation(location: string): string {
  if (location.startsWith("/") || location.includes("://")) return location;
  const parts = location.split("/").filter((part) => part !== "" && part !== ".");
  // The base itself has none.
  return parts.length === 0 ? location : parts.join("/");
}
