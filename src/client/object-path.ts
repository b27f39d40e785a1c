import type { Identifier } from "../namespace/identifier.ts";

/** Parses a path such as `team/people` into the names of an object; `/` and the empty text are the root. */
export function parsePath(text: string): Identifier {
  // The REST API joins names with a dollar, which shells require to be quoted.
  return text.split(/[/$]/).filter((name) => name !== "");
}

/** Returns the path of an object, for people. */
export function pathText(id: Identifier): string {
  return id.length === 0 ? "/" : id.join("/");
}
