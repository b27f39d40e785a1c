import type { Dialect } from "./dialect.ts";

/** The public specification, word for word: the dialect of everyone who is not recognised as someone else. */
export const specification: Dialect = {
  name: "specification",
  recognises: () => true,
  forms: new Map(),
  errors: [],
  headers: {},
};
