import { escapeInvisible } from "../../runtime/line-text.ts";

/** Returns a value as JSON in a single line; 64-bit integers are numbers. */
export function itemJson(value: unknown): string {
  return escapeInvisible(
    JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? Number(item) : item)),
  );
}
