import { LanceError } from "../../../namespace/errors.ts";
import { checkUpkeepProperties } from "../upkeep/policy.ts";
import { checkDefinesNoView } from "./views/definition.ts";

/**
 * Maximum number of properties of a namespace or a table, and maximum size of their names and values together, in
 * bytes.
 */
const MAX_PROPERTIES = 1_000;
const MAX_PROPERTIES_BYTES = 1024 * 1024;

/**
 * Checks the properties of an object, because every description of it carries them all.
 *
 * @throws LanceError InvalidInput, when there are too many or they are too long
 */
export function checkProperties(properties: Readonly<Record<string, string>>): void {
  const entries = Object.entries(properties);
  if (entries.length > MAX_PROPERTIES)
    throw new LanceError("InvalidInput", `an object has at most ${MAX_PROPERTIES} properties`);
  const bytes = entries.flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes > MAX_PROPERTIES_BYTES)
    throw new LanceError("InvalidInput", `properties have at most ${MAX_PROPERTIES_BYTES} bytes together`);
}

/**
 * Checks the properties that a call gives a table.
 *
 * @param before those that the table keeps beside them
 * @throws LanceError InvalidInput, as {@link checkProperties}, {@link checkUpkeepProperties} and {@link checkDefinesNoView}
 */
export function checkTableProperties(
  properties: Readonly<Record<string, string>>,
  before: Readonly<Record<string, string>> = {},
): void {
  checkProperties({ ...before, ...properties });
  checkUpkeepProperties(properties);
  checkDefinesNoView(properties);
}
