import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { parseVector } from "./vector-text.ts";

/** What a form asks for, as it was typed. */
export interface QueryForm {
  readonly vector: string;
  /** Empty leaves the choice to the gateway. */
  readonly vectorColumn: string;
  readonly words: string;
  readonly filter: string;
  /** Default: all columns. */
  readonly columns: readonly string[];
  readonly limit: string;
  /** Empty for the metric of the index. */
  readonly distance: string;
}

export const EMPTY_FORM: QueryForm = {
  vector: "",
  vectorColumn: "",
  words: "",
  filter: "",
  columns: [],
  limit: "10",
  distance: "",
};

/**
 * Returns the request of a form.
 *
 * @throws Error that says what is wrong with a field.
 */
export function requestOf(form: QueryForm) {
  const vector = parseVector(form.vector);
  const k = Number(form.limit);
  if (!Number.isInteger(k) || k < 1) throw new Error("the number of rows must be 1 or more");
  return {
    k,
    ...(vector.length > 0 && {
      vector,
      ...(form.vectorColumn !== "" && { vectorColumn: form.vectorColumn }),
      ...(form.distance !== "" && { distanceType: form.distance }),
    }),
    ...(form.words.trim() !== "" && { fullTextQuery: form.words.trim() }),
    ...(form.filter.trim() !== "" && { filter: form.filter.trim() }),
    ...(form.columns.length > 0 && { columns: form.columns }),
  };
}

/** Returns the names of the fields that hold vectors. */
export function vectorFields(schema: JsonArrowSchema | undefined): readonly string[] {
  return (schema?.fields ?? [])
    .filter(({ type }) => type?.type === "fixed_size_list")
    .map(({ name }) => name);
}
