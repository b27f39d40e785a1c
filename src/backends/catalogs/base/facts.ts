import type { ErrorName } from "../../../namespace/errors.ts";
import type { ErrorFacts } from "../../rest/errors.ts";

/** A row of a catalog's errors: statuses, words of the body, and the error of the contract. */
export type ErrorRow = readonly [statuses: readonly number[], text: RegExp, error: ErrorName];

/** Kind of the object that a request is about. */
export type Resource = "namespace" | "table";

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
