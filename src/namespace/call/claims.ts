import { isJsonObject } from "../../runtime/json.ts";

type Claims = Readonly<Record<string, unknown>>;

/** Returns a claim by its name, or by a path with dots such as `realm_access.roles`; undefined if there is none. */
export function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split(".")
    .reduce<unknown>(
      (value, key) => (isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
      claims,
    );
}

/** Returns the texts of a claim, which may be a single value or a list; numbers and booleans count as their text. */
export function textsOf(value: unknown): readonly string[] {
  return [value].flat().flatMap((each) => {
    const isScalar = typeof each === "string" || typeof each === "number" || typeof each === "boolean";
    return isScalar ? [String(each)] : [];
  });
}
