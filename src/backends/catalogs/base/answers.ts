import { LanceError } from "../../../namespace/errors.ts";
import { isJsonObject } from "../../../runtime/text/json.ts";
import type { Properties } from "./catalog.ts";
import type { Json } from "./json-client.ts";

/** Returns a text of an answer; undefined if it is absent or null. @throws LanceError for any other value */
export function textIn(answer: Json, name: string): string | undefined {
  const value = answer[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  throw malformed(name);
}

/** Returns the list of an answer; an empty one if it is absent. @throws LanceError for any other value */
export function listIn(answer: Json, name: string): readonly unknown[] {
  const value = answer[name] ?? [];
  if (Array.isArray(value)) return value;
  throw malformed(name);
}

/** Returns the objects of a list. */
export function objectsIn(answer: Json, name: string): readonly Json[] {
  return listIn(answer, name).map((each) => {
    if (isJsonObject(each)) return each;
    throw malformed(name);
  });
}

/** Returns an object of an answer; undefined if it is absent or null. */
export function objectIn(answer: Json, name: string): Json | undefined {
  const value = answer[name];
  if (value === undefined || value === null) return undefined;
  if (isJsonObject(value)) return value;
  throw malformed(name);
}

/** Returns the properties of an answer. */
export function propertiesIn(answer: Json, name: string): Properties {
  const entries = Object.entries(objectIn(answer, name) ?? {});
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function malformed(name: string): LanceError {
  return new LanceError(
    "ServiceUnavailable",
    `${name} of the upstream catalog's answer has an unknown form`,
    {
      fault: "broken",
    },
  );
}
