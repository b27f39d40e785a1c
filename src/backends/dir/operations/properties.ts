import { LanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { CatalogContext } from "../catalog/catalog-context.ts";
import { checkSize } from "../catalog/state/properties-size.ts";
import { checkEngineProperty } from "../jobs/job-engine.ts";
import { checkUpkeepProperties } from "../upkeep/policy.ts";
import { checkCacheProperty } from "./read/pins.ts";
import { checkDefinesNoView } from "./views/definition.ts";

/** Maximum number of properties of an object. */
const MAX_PROPERTIES = 1_000;

/**
 * Checks the properties that a call gives an object, because every description of it carries them all.
 *
 * @throws LanceError InvalidInput, when there are too many or they are too long
 */
export function checkProperties(
  maxBytes: number,
  id: Identifier,
  properties: Readonly<Record<string, string>>,
): void {
  const name = JSON.stringify(joinIdentifier(id));
  const count = Object.keys(properties).length;
  if (count > MAX_PROPERTIES)
    throw new LanceError("InvalidInput", `${name} has ${count} properties, more than ${MAX_PROPERTIES}`);
  checkSize(name, properties, maxBytes);
}

/**
 * Checks the properties that a call gives a table.
 *
 * @param before those that the table keeps beside them
 * @throws LanceError InvalidInput, as {@link checkProperties}, {@link checkUpkeepProperties} and {@link checkDefinesNoView}
 */
export function checkTableProperties(
  { catalog }: Pick<CatalogContext, "catalog">,
  id: Identifier,
  properties: Readonly<Record<string, string>>,
  before: Readonly<Record<string, string>> = {},
): void {
  checkProperties(catalog.limits.objectBytes, id, { ...before, ...properties });
  checkUpkeepProperties(properties);
  checkCacheProperty(properties);
  checkEngineProperty(properties);
  checkDefinesNoView(properties);
}
