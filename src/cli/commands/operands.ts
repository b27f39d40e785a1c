import { UsageError } from "../../config/option-spec.ts";
import { parseInteger } from "../../config/parsers.ts";

/** Parses the operand VERSION. */
export function parseVersion(text: string): number {
  try {
    return parseInteger(1, Number.MAX_SAFE_INTEGER)(text);
  } catch {
    throw new UsageError(`VERSION must be a positive integer, not ${JSON.stringify(text)}`);
  }
}
