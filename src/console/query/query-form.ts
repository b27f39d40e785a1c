import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { vectorNumber } from "../rows/cells.ts";
import type { Params } from "../shell/route.ts";

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

/** Fields of a form that are texts, with their names in an address. */
const TEXTS = {
  vector: "vector",
  vectorColumn: "field",
  words: "words",
  filter: "filter",
  limit: "limit",
  distance: "distance",
} as const;

/** Reads a form from an address; undefined if the address has none. */
export function formOf(params: Params): QueryForm | undefined {
  if (params["limit"] === undefined) return undefined;
  const texts = Object.entries(TEXTS).map(([field, name]) => [field, params[name] ?? ""]);
  return { ...EMPTY_FORM, ...Object.fromEntries(texts), columns: namesOf(params["columns"]) };
}

/** Writes a form for an address. */
export function paramsOf(form: QueryForm): Readonly<Record<string, string | undefined>> {
  const texts = Object.entries(TEXTS).map(([field, name]) => [
    name,
    String(form[field as keyof typeof TEXTS]) || undefined,
  ]);
  const columns = form.columns.length > 0 ? JSON.stringify(form.columns) : undefined;
  return { ...Object.fromEntries(texts), columns, limit: form.limit || EMPTY_FORM.limit };
}

function namesOf(text: string | undefined): readonly string[] {
  try {
    const names: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  } catch {
    return [];
  }
}

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

/**
 * Reads the numbers of a pasted vector: with or without brackets, separated by commas, semicolons, spaces or lines.
 *
 * @throws Error that says which part is not a number.
 */
export function parseVector(text: string): number[] {
  const parts = text
    .replace(/^[\s[({]+|[\s\])}]+$/g, "")
    .split(/[\s,;]+/)
    .filter((part) => part !== "");
  return parts.map((part) => {
    const value = Number(part);
    if (!Number.isFinite(value)) throw new Error(`“${part.slice(0, 40)}” is not a number`);
    return value;
  });
}

/** Writes the numbers of a vector of a row, with all their digits. */
export function vectorText(values: ArrayLike<number>): string {
  return Array.from(values, (value) => vectorNumber(value, values instanceof Float32Array)).join(", ");
}
