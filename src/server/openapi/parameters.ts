import type { DescField } from "@bufbuild/protobuf";
import { rest_method } from "../../gen/lance/namespace/v1/options_pb.ts";
import { optionOf } from "../../namespace/option.ts";
import type { Binding } from "../../transcode/binding.ts";
import { isRequired, restName } from "../../transcode/descriptors.ts";
import { described } from "./comments.ts";
import type { Schemas } from "./schemas.ts";

/** Variable of a path that names an object; the specification calls it as the list of names in bodies. */
const OBJECT = {
  field: "identifier",
  name: "id",
  description:
    "The names that lead from the root to the object, joined with `delimiter`. The delimiter alone is the root.",
} as const;

/** Field that says how paths join names; every operation takes it in the query. */
export const DELIMITER = "delimiter";

/** Fields that say again what the path says. */
const NOT_IN_QUERY: ReadonlySet<string> = new Set(["id", OBJECT.field]);

/** Returns the path of a binding as a document writes it. */
export function pathOf({ template }: Binding): string {
  return template.variables.reduce(
    (path, { field }) => path.replace(`{${field}}`, `{${field === OBJECT.field ? OBJECT.name : field}}`),
    template.source,
  );
}

/** Returns the parameters of a binding: those of its path, then those of its query. */
export function parametersOf(binding: Binding, schemas: Schemas): unknown[] {
  const { method, template } = binding;
  const variables = new Set(template.variables.map(({ field }) => field));
  const inPath = method.input.fields.filter(({ name }) => variables.has(name));
  return [
    ...inPath.map((field) => ({
      ...nameInPath(field),
      in: "path",
      required: true,
      schema: schemas.field(field),
    })),
    ...queryFields(binding, variables).map((field) => queryParameter(field, schemas)),
  ];
}

function nameInPath(field: DescField): { readonly name: string; readonly description?: string } {
  if (field.name !== OBJECT.field) return { name: restName(field), ...described(field) };
  return { name: OBJECT.name, description: OBJECT.description };
}

function queryFields(binding: Binding, variables: ReadonlySet<string>): readonly DescField[] {
  const { method, requestBody, requestField } = binding;
  const isWhole = requestBody === "json" && requestField === undefined;
  const named = [DELIMITER, ...optionOf(method, rest_method).queryFields];
  for (const name of named.slice(1)) {
    if (!method.input.fields.some((field) => field.name === name))
      throw new Error(`${method}: query_fields names "${name}", which its request lacks`);
  }
  return method.input.fields.filter((field) => {
    const isMessage = field.message !== undefined && field.fieldKind !== "map";
    if (isMessage || field === requestField || variables.has(field.name)) return false;
    return isWhole ? named.includes(field.name) : !NOT_IN_QUERY.has(field.name);
  });
}

function queryParameter(field: DescField, schemas: Schemas): unknown {
  const schema = schemas.field(field);
  // A map travels as the text of a JSON object.
  const value = field.fieldKind === "map" ? { content: { "application/json": { schema } } } : { schema };
  return { name: restName(field), in: "query", required: isRequired(field), ...described(field), ...value };
}
