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

/** Compares two names as the catalog orders them: by their UTF-8 bytes, which is the order of code points. */
export function compareNames(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x === y) continue;
    // A surrogate is half of a code point that sorts after all single-unit code points.
    const [xHalf, yHalf] = [isSurrogate(x), isSurrogate(y)];
    return xHalf === yHalf ? x - y : xHalf ? 1 : -1;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

/** Returns where the names after a given one begin in an ordered list. */
export function firstAfter(names: readonly string[], name: string): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareNames(names[middle] as string, name) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the first names of two ordered lists; a name in both appears once. */
export function mergeNames(a: readonly string[], b: readonly string[], limit: number): string[] {
  if (b.length === 0) return a.slice(0, limit);
  const names: string[] = [];
  for (let [i, j] = [0, 0]; names.length < limit && (i < a.length || j < b.length); ) {
    const [left, right] = [a[i], b[j]];
    const order = left === undefined ? 1 : right === undefined ? -1 : compareNames(left, right);
    names.push((order <= 0 ? left : right) as string);
    if (order <= 0) i++;
    if (order >= 0) j++;
  }
  return names;
}
