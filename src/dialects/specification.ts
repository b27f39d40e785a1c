import type { Dialect } from "./dialect.ts";

/** The public specification, word for word: the dialect of every client that no other dialect recognises. */
export const specification: Dialect = {
  name: "specification",
  recognises: () => true,
  forms: new Map(),
  errors: [],
  preferences: new Map(),
  headers: {},
};
