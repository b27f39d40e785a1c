import { type ErrorName, LanceError } from "../../../namespace/errors.ts";
import { isJsonObject } from "../../../runtime/text.ts";
import type { ErrorFacts } from "../../rest/errors.ts";
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

/** A row of a catalog's errors: statuses, words of the body, and the error of the contract. */
type ErrorRow = readonly [statuses: readonly number[], text: RegExp, error: ErrorName];

/** Kind of the object that a request is about. */
type Resource = "namespace" | "table";

/** Errors of an object that exists, by its kind. */
const EXISTS: Readonly<Record<Resource, ErrorName>> = {
  namespace: "NamespaceAlreadyExists",
  table: "TableAlreadyExists",
};

/**
 * Creates the function that returns how errors of a request are read. A 404 that no row explains is about the object itself,
 * and so is a 409.
 */
export function createFacts(rows: readonly ErrorRow[]): (resource: Resource) => ErrorFacts {
  const factsOf = (resource: Resource): ErrorFacts => {
    const all: readonly ErrorRow[] = [...rows, [[409], /(?:)/, EXISTS[resource]]];
    return {
      forms: all.map(([statuses, text, error]) => ({
        statuses,
        codes: [undefined, ...statuses],
        text,
        error,
      })),
      request: resource,
      resource,
      asksExistence: true,
    };
  };
  const known = { namespace: factsOf("namespace"), table: factsOf("table") };
  return (resource) => known[resource];
}
