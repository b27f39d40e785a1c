import { LanceError } from "../../../../namespace/errors.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import type { Row } from "./row.ts";
import { propertiesText } from "./rows/stored-row.ts";
import type { CatalogView, Changes } from "./view.ts";

/** Bounds of the properties in a catalog, which every process keeps in memory. */
export interface PropertyLimits {
  /** Maximum size of the names and values of one object's properties, in bytes. */
  readonly objectBytes: number;
  /** Size of all properties, as the manifest keeps them, up to which changes may add to them, in bytes. */
  readonly catalogBytes: number;
}

/** The default limits. */
export const PROPERTY_LIMITS: PropertyLimits = { objectBytes: 64 * 1024, catalogBytes: 64 * 1024 ** 2 };

/**
 * Checks the size of an object's properties.
 *
 * @param name the object in errors
 * @param maxBytes maximum size of names and values
 * @throws LanceError InvalidInput
 */
export function checkSize(name: string, properties: Row["properties"], maxBytes: number): void {
  const bytes = sizeOf(properties);
  if (bytes <= maxBytes) return;
  throw new LanceError(
    "InvalidInput",
    `the properties of ${name} have ${bytes} bytes in their names and values, more than the ${maxBytes} of --max-properties-size`,
  );
}

/**
 * Checks the properties that a change puts into a catalog. An object that is larger already may keep its size, also under another name, and
 * a catalog that is larger already may shrink.
 *
 * @param before the catalog before the change
 * @param total size of all properties before the change, in bytes
 * @returns number of bytes by which the change makes the properties larger; 0 if it puts none
 * @throws LanceError InvalidInput for an object that is too large, PayloadTooLarge for a catalog that becomes too large
 */
export function* checkGrowth(
  before: CatalogView,
  changes: Changes,
  total: number,
  { objectBytes, catalogBytes }: PropertyLimits,
): Steps<number> {
  const growth = yield* growthOf(before, changes);
  if (growth <= 0) return growth;
  for (const [objectId, row] of changes) {
    if (row === undefined) continue;
    const known = sizeOf(before.get(objectId)?.properties ?? {});
    checkSize(JSON.stringify(objectId), row.properties, Math.max(objectBytes, known));
  }
  if (total + growth <= catalogBytes) return growth;
  throw new LanceError(
    "PayloadTooLarge",
    `the properties of the catalog have ${total} bytes, and ${growth} more exceed the ${catalogBytes} of --max-catalog-properties; remove objects with large properties first`,
  );
}

/** Returns by how many bytes changes make the properties of a catalog larger; 0 if they put none. */
export function* growthOf(before: CatalogView, changes: Changes): Steps<number> {
  let put = 0;
  for (const row of changes.values()) if (row !== undefined) put += storedSize(row.properties);
  // A removal of many rows need not read each of them.
  if (put === 0) return 0;
  let replaced = 0;
  let count = 0;
  for (const objectId of changes.keys()) {
    replaced += storedSize(before.get(objectId)?.properties ?? {});
    if (++count % ITEMS_PER_STEP === 0) yield;
  }
  return put - replaced;
}

function sizeOf(properties: Row["properties"]): number {
  return Object.entries(properties)
    .flat()
    .reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function storedSize(properties: Row["properties"]): number {
  return Buffer.byteLength(propertiesText(properties) ?? "");
}
