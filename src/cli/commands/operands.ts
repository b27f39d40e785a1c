import type { Identifier } from "../../client/exports.ts";

/** A path such as `team/people` as the names of an object; `/` and nothing are the root. */
export function parsePath(text: string): Identifier {
  // A dollar joins names in the REST API; shells want it quoted.
  return text.split(/[/$]/).filter((name) => name !== "");
}

/** The path of an object, for people. */
export function pathText(id: Identifier): string {
  return id.length === 0 ? "/" : id.join("/");
}
