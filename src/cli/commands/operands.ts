import type { Identifier } from "../../client/exports.ts";
import { UsageError } from "../../config/option-spec.ts";
import { parseInteger } from "../../config/parsers.ts";

/** Parses a path such as `team/people` into the names of an object; `/` and the empty text are the root. */
export function parsePath(text: string): Identifier {
  // The REST API joins names with a dollar, which shells require to be quoted.
  return text.split(/[/$]/).filter((name) => name !== "");
}

/** Returns the path of an object, for people. */
export function pathText(id: Identifier): string {
  return id.length === 0 ? "/" : id.join("/");
}

/** Parses the operand VERSION. */
export function parseVersion(text: string): number {
  try {
    return parseInteger(1, Number.MAX_SAFE_INTEGER)(text);
  } catch {
    throw new UsageError(`VERSION must be a positive integer, not ${JSON.stringify(text)}`);
  }
}
