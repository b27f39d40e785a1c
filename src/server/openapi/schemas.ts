import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  ScalarType,
} from "@bufbuild/protobuf";
import { COMMENTS } from "../../gen/lance/comments.ts";
import { RestForm, rest_method } from "../../gen/lance/namespace/v1/options_pb.ts";
import { optionOf } from "../../namespace/option.ts";
import type { Binding } from "../../transcode/binding.ts";
import {
  isImplicit,
  isRequired,
  restForm,
  restName,
  tupleFields,
  valueField,
} from "../../transcode/descriptors.ts";
import { restSpelling } from "../../transcode/json/scalars.ts";

type Part = DescService | DescMethod | DescMessage | DescField;

/** Returns the comment of the contract about a part of it, as a member of an object, which is empty without one. */
export function described(part: Part): { readonly description?: string } {
  const description = commentOf(part);
  return description === undefined ? {} : { description };
}

/** Returns the comment of the contract about a part of it. */
export function commentOf(part: Part): string | undefined {
  return COMMENTS["typeName" in part ? part.typeName : `${part.parent.typeName}.${part.name}`];
}

/** A schema of JSON Schema 2020-12, as in OpenAPI 3.1. */
export type Schema = Readonly<Record<string, unknown>>;

/** Schemas of messages; each message becomes a component once it is referred to. */
export interface Schemas {
  /** All components, by their names. */
  readonly components: Readonly<Record<string, Schema>>;
  message(message: DescMessage): Schema;
  /** Returns the schema of the value of a field. */
  field(field: DescField): Schema;
}

const INT64 = { type: "integer", format: "int64" };
const INT32 = { type: "integer", format: "int32" };
const UINT32 = { type: "integer", format: "int64", minimum: 0, maximum: 2 ** 32 - 1 };
const UINT64 = { ...INT64, minimum: 0 };

const SCALARS: Readonly<Record<ScalarType, Schema>> = {
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64" },
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.DOUBLE]: { type: "number", format: "double" },
  [ScalarType.FLOAT]: { type: "number", format: "float" },
  [ScalarType.INT32]: INT32,
  [ScalarType.SINT32]: INT32,
  [ScalarType.SFIXED32]: INT32,
  [ScalarType.UINT32]: UINT32,
  [ScalarType.FIXED32]: UINT32,
  [ScalarType.INT64]: INT64,
  [ScalarType.SINT64]: INT64,
  [ScalarType.SFIXED64]: INT64,
  [ScalarType.UINT64]: UINT64,
  [ScalarType.FIXED64]: UINT64,
};

/** Messages with a JSON of their own. */
const WELL_KNOWN: Readonly<Record<string, Schema>> = {
  "google.protobuf.Value": {},
  "google.protobuf.Struct": { type: "object" },
  "google.protobuf.ListValue": { type: "array", items: {} },
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string" },
};

/**
 * Creates an empty set of schemas.
 *
 * @param elsewhere names of the fields of a message that paths carry instead of a body.
 */
export function createSchemas(elsewhere: (message: DescMessage) => ReadonlySet<string>): Schemas {
  const components: Record<string, Schema> = {};
  const owners = new Map<string, DescMessage>();

  function message(descriptor: DescMessage): Schema {
    const wellKnown = WELL_KNOWN[descriptor.typeName];
    if (wellKnown !== undefined) return wellKnown;
    switch (restForm(descriptor)) {
      case RestForm.VALUE:
        return orNull(valueField(descriptor));
      case RestForm.TUPLE: {
        const prefixItems = tupleFields(descriptor).map(field);
        const count = prefixItems.length;
        return { type: "array", prefixItems, items: false, minItems: count, maxItems: count };
      }
      default:
        return component(descriptor);
    }
  }

  function component(descriptor: DescMessage): Schema {
    const { name } = descriptor;
    const owner = owners.get(name);
    if (owner !== undefined && owner !== descriptor)
      throw new Error(`${owner.typeName} and ${descriptor.typeName} would be the same schema`);
    if (owner === undefined) {
      // A message may contain itself.
      owners.set(name, descriptor);
      components[name] = object(descriptor);
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function object(descriptor: DescMessage): Schema {
    const apart = elsewhere(descriptor);
    const fields = descriptor.fields.filter(({ name }) => !apart.has(name));
    const properties = fields.map(
      (each) => [restName(each), { ...field(each), ...described(each) }] as const,
    );
    const required = fields.filter(isRequired).map(restName);
    return {
      type: "object",
      ...described(descriptor),
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
    };
  }

  function orNull(descriptor: DescField): Schema {
    const schema = field(descriptor);
    const isSet = isImplicit(descriptor) || descriptor.fieldKind === "map" || descriptor.fieldKind === "list";
    return isSet ? schema : { anyOf: [schema, { type: "null" }] };
  }

  function field(descriptor: DescField): Schema {
    const item = itemOf(descriptor);
    if (descriptor.fieldKind === "list") return { type: "array", items: item };
    if (descriptor.fieldKind === "map") return { type: "object", additionalProperties: item };
    return item;
  }

  function itemOf(descriptor: DescField): Schema {
    if (descriptor.enum !== undefined) return enumSchema(descriptor.enum);
    if (descriptor.message !== undefined) return message(descriptor.message);
    return SCALARS[descriptor.scalar as ScalarType];
  }

  return { components, message, field };
}

/** Returns the spellings that the gateway writes; it reads others, too. */
function enumSchema(descriptor: DescEnum): Schema {
  const values = descriptor.values.filter(({ name }) => !name.endsWith("_UNSPECIFIED"));
  return { type: "string", enum: values.map((value) => restSpelling(descriptor, value)) };
}

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
