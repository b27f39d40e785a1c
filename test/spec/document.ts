import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/** A schema of the document, with references taken out and the `null` of a union left away. */
export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly additionalProperties?: unknown;
  readonly items?: unknown;
  readonly prefixItems?: readonly unknown[];
  readonly contentEncoding?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  /** The name among the document's schemas, when it has one. */
  readonly name?: string;
}

/** A body: its media type, or the first of several, and what it holds. */
export interface Body {
  readonly mediaType: string;
  readonly mediaTypes: readonly string[];
  readonly schema: Schema;
}

/** A value in the path or in the query. */
export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly schema: Schema;
}

/** An operation as the document describes it. */
export interface SpecOperation {
  readonly id: string;
  /** The HTTP method in capitals. */
  readonly httpMethod: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly request: (Body & { readonly required: boolean }) | undefined;
  /** The only status of a success, and its body, if it has one. */
  readonly success: { readonly status: number; readonly body: Body | undefined };
  /** The statuses of errors, such as `404` or `5XX`. */
  readonly errors: readonly string[];
}

type Json = Readonly<Record<string, unknown>>;

/** A document of OpenAPI, as far as the tests read it. */
export interface Document {
  /** The names of all schemas. */
  readonly schemaNames: readonly string[];
  /** Returns the schema of that name. */
  schemaNamed(name: string): Schema;
  /** Returns the schema at a place of the document. Fields beside a reference override those that it refers to. */
  schemaAt(node: unknown): Schema;
  /** All operations, in the document's order. */
  readonly operations: readonly SpecOperation[];
}

/** Reads a document. */
export function readDocument(document: Json): Document {
  const components = document["components"] as Readonly<Record<string, Json>>;

  function schemaAt(node: unknown): Schema {
    const {
      $ref,
      oneOf,
      anyOf = oneOf,
      type,
      ...rest
    } = node as Json & {
      $ref?: string;
      oneOf?: readonly Json[];
      anyOf?: readonly Json[];
    };
    if ($ref !== undefined)
      return { ...schemaAt(follow($ref)), ...rest, name: $ref.split("/").at(-1) as string };
    const union = anyOf?.filter((option) => option["type"] !== "null");
    if (union !== undefined) {
      if (union.length !== 1)
        throw new Error(`a union of ${union.length} kinds is more than these tests know`);
      return { ...schemaAt(union[0]), ...rest };
    }
    const types = [type].flat().filter((each) => each !== "null");
    if (types.length > 1)
      throw new Error(`a schema of the types ${types.join(", ")} is more than these tests know`);
    return { ...rest, ...(types[0] === undefined ? {} : { type: types[0] as string }) };
  }

  function readOperation(
    httpMethod: string,
    path: string,
    node: Json,
    shared: readonly Json[],
  ): SpecOperation {
    const own = (node["parameters"] ?? []) as readonly Json[];
    const request = node["requestBody"] as Json | undefined;
    const responses = Object.entries(node["responses"] as Json);
    const successes = responses.filter(([status]) => status.startsWith("2"));
    const [success] = successes;
    if (success === undefined || successes.length > 1)
      throw new Error(`${path}: not one success but several`);
    const body = request && bodyOf(request);
    return {
      id: node["operationId"] as string,
      httpMethod,
      path,
      parameters: [...shared, ...own].map(readParameter),
      request: body && { ...body, required: request["required"] === true },
      success: { status: Number(success[0]), body: bodyOf(success[1] as Json) },
      errors: responses.map(([status]) => status).filter((status) => !status.startsWith("2")),
    };
  }

  function readParameter(node: Json): Parameter {
    const { name, in: place, required = false, schema = JSON_TEXT, description } = deref(node);
    return {
      name: name as string,
      in: place as string,
      required: required as boolean,
      schema: {
        ...schemaAt(schema),
        ...(description === undefined ? {} : { description: description as string }),
      },
    };
  }

  function bodyOf(node: Json): Body | undefined {
    const contents = Object.entries((deref(node)["content"] ?? {}) as Readonly<Record<string, Json>>);
    const [content] = contents;
    if (content === undefined) return undefined;
    const mediaTypes = contents.map(([mediaType]) => mediaType);
    return { mediaType: content[0], mediaTypes, schema: schemaAt(content[1]["schema"]) };
  }

  function deref(node: Json): Json {
    return typeof node["$ref"] === "string" ? follow(node["$ref"]) : node;
  }

  function follow(reference: string): Json {
    const [, ...names] = reference.split("/");
    return names.reduce((at, name) => at[name] as Json, document);
  }

  return {
    schemaNames: Object.keys(components["schemas"] as Json),
    schemaNamed: (name) => schemaAt({ $ref: `#/components/schemas/${name}` }),
    schemaAt,
    operations: Object.entries(document["paths"] as Json).flatMap(([path, item]) => {
      const { parameters: shared = [], ...methods } = item as Json & { parameters?: readonly Json[] };
      return Object.entries(methods).map(([httpMethod, operation]) =>
        readOperation(httpMethod.toUpperCase(), path, operation as Json, shared),
      );
    }),
  };
}

/** The schema of a parameter whose text is JSON. */
const JSON_TEXT: Json = { type: "string" };

const file = join(import.meta.dirname, "lance-namespace-0.11.1.yaml");

/** The public specification. */
export const specification: Document = readDocument(parse(readFileSync(file, "utf8")) as Json);

export const { schemaAt, schemaNamed, schemaNames, operations: specOperations } = specification;
