/** The deepest nesting of objects and arrays in a request body. */
export const MAX_JSON_DEPTH = 64;
