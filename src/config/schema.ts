import { BACKEND_KINDS, fileKey, type OptionSpec } from "./option-spec.ts";
import { OPTION_GROUPS, SERVE_OPTIONS } from "./options/groups.ts";

/** A schema by JSON Schema, draft 7, which editors know. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const SPECS: readonly OptionSpec[] = Object.values(OPTION_GROUPS).flatMap((group) =>
  Object.values<OptionSpec>(group),
);

/** A reference to an environment variable, which may be in any value. */
const VARIABLE = "\\$\\{[^}]*\\}";
const TEXT: JsonSchema = { type: ["string", "number", "boolean"] };
const DATABASE_NAME = "^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$";

/** Returns the schema of the configuration file of `serve`, by which editors complete and check it. */
export function configurationSchema(): JsonSchema {
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Configuration of lance-gateway serve",
    type: "object",
    properties: {
      ...propertiesOf(SPECS.filter((spec) => spec !== SERVE_OPTIONS.config)),
      databases: {
        description: "Databases by name, each with the options of its kind.",
        type: "object",
        minProperties: 1,
        patternProperties: {
          [DATABASE_NAME]: {
            type: "object",
            properties: propertiesOf(SPECS.filter(({ backends = [] }) => backends.some(isKind))),
            additionalProperties: false,
          },
        },
        additionalProperties: false,
      },
      routes: ROUTES,
      "default-database": { description: "Database of calls that name none.", type: "string", minLength: 1 },
    },
    additionalProperties: false,
  };
}

const isKind = (kind: string) => BACKEND_KINDS.some((each) => each === kind);

const ROUTES: JsonSchema = {
  description: "Ways in which a call names its database.",
  type: "array",
  items: {
    type: "object",
    required: ["by"],
    properties: {
      by: { enum: ["header", "path", "host", "namespace"] },
      prefix: { description: "Beginning of paths, for by: path.", type: "string" },
      hosts: {
        description: "Databases by host, for by: host.",
        type: "object",
        additionalProperties: { type: "string" },
      },
    },
    additionalProperties: false,
  },
};

function propertiesOf(specs: readonly OptionSpec[]): JsonSchema {
  return Object.fromEntries(
    specs.map((spec) => [fileKey(spec), { description: spec.help, ...schemaOf(spec) }]),
  );
}

function schemaOf(spec: OptionSpec): JsonSchema {
  const one = valueSchema(spec);
  if (!spec.repeatable) return one;
  const each = spec.maps ? { anyOf: [one, { type: "object" }] } : one;
  const forms = [one, { type: "array", items: each }];
  if (spec.maps || spec.value?.includes("=")) forms.push({ type: "object" });
  return { anyOf: forms };
}

function valueSchema({ value, parse: { choices, bounds }, fallback }: OptionSpec): JsonSchema {
  if (value === undefined) {
    return {
      type: ["boolean", "string"],
      pattern: `^(?:true|false)$|${VARIABLE}`,
      default: fallback === "true",
    };
  }
  const initial =
    fallback === undefined ? {} : { default: bounds === undefined ? fallback : Number(fallback) };
  if (choices !== undefined) {
    return { anyOf: [{ enum: choices }, { type: "string", pattern: VARIABLE }], ...initial };
  }
  if (bounds !== undefined) {
    const [minimum, maximum] = bounds;
    return { type: ["integer", "string"], minimum, maximum, pattern: `^\\d+$|${VARIABLE}`, ...initial };
  }
  return { ...TEXT, ...initial };
}
