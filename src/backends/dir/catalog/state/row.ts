/** Kind of the rows of views, which are stored as namespaces with {@link VIEW_PROPERTY}. */
export const VIEW_KIND = "lance_gateway.sql_view";

/** Beginning of the names of a view's properties. */
export const VIEW_PROPERTIES = `${VIEW_KIND}.`;

/** Property with the query of a view: a namespace that has it is a view. */
export const VIEW_PROPERTY = `${VIEW_PROPERTIES}query`;

/** A row of the `__manifest` table: one object of the catalog. */
export interface Row {
  /** Names from the root down, joined with `$`. */
  readonly objectId: string;
  /** `namespace`, `table` or {@link VIEW_KIND}; rows of other kinds belong to other writers and are not changed. */
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
