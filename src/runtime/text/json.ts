/** The deepest nesting of objects and arrays in a request body. */
export const MAX_JSON_DEPTH = 64;

/** Whether a parsed value is an object with members: neither null nor a list. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
