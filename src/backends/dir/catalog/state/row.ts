/** Kind of the rows of views. To other programs these are rows of an unknown kind, whose names are taken. */
export const VIEW_KIND = "view";

/** A row of the `__manifest` table: one object of the catalog. */
export interface Row {
  /** Names from the root down, joined with `$`. */
  readonly objectId: string;
  /** `namespace`, `table` or `view`; rows of other kinds belong to other writers and are not changed. */
  readonly objectType: string;
  /** Directory of the table, relative to the base; undefined for other objects. */
  readonly location: string | undefined;
  /** Arbitrary entries that clients store with the object. */
  readonly properties: Readonly<Record<string, string>>;
}

/** Whether two maps of properties have equal entries. */
export function sameProperties(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/** Returns the id of the parent; that of the root is the empty string. */
export function parentId(objectId: string): string {
  const at = objectId.lastIndexOf("$");
  return at < 0 ? "" : objectId.slice(0, at);
}
