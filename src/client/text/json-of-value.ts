/** Returns a value as JSON, with 64-bit integers as digits; what JSON has no number for is null. */
export function jsonOfValue(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    typeof item === "bigint" ? JSON.rawJSON(String(item)) : item,
  );
}
