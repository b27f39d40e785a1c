/** A row of the `__manifest` table: one object of the catalog. */
export interface Row {
  /** The names from the root down, joined with `$`. */
  readonly objectId: string;
  /** `namespace` or `table`; other writers may keep other kinds, which are left alone. */
  readonly objectType: string;
  /** The table's directory, relative to the base; undefined for namespaces. */
  readonly location: string | undefined;
  /** Free entries that clients keep with the object. */
  readonly properties: Readonly<Record<string, string>>;
}

/** Whether two maps of properties have the same entries. */
export function sameProperties(
  a: Readonly<Record<string, string>>,
  b: Readonly<Record<string, string>>,
): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/** The id of the parent; the root is the empty string. */
export function parentId(objectId: string): string {
  const at = objectId.lastIndexOf("$");
  return at < 0 ? "" : objectId.slice(0, at);
}

/** An object's own name. */
export function ownName(objectId: string): string {
  return objectId.slice(objectId.lastIndexOf("$") + 1);
}
