import { STATUS_CODES } from "node:http";
import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { ARROW_FILE, ARROW_STREAM, ROW_TYPES } from "../../arrow/ipc/ipc-forms.ts";
import { ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { ERROR_TABLE, type ErrorEntry, type ErrorName } from "../../namespace/errors.ts";
import type { Steps } from "../../runtime/pace.ts";
import type { Binding } from "../../transcode/binding.ts";
import { isRequired } from "../../transcode/descriptors.ts";
import { createTranscoder } from "../../transcode/transcoder.ts";
import {
  commentOf,
  createSchemas,
  DELIMITER,
  described,
  parametersOf,
  pathOf,
  type Schema,
  type Schemas,
} from "./schemas.ts";

/** Options of {@link documentSteps}. */
export interface DocumentOptions {
  /** Version of the gateway. */
  readonly version: string;
  /** Ways in which callers prove who they are. Default: nobody has to. */
  readonly security?: readonly SecurityWay[] | undefined;
}

/** A document of OpenAPI 3.1. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Describes the REST API by the bindings that route its requests; there is a step for each method. */
export function* documentSteps({ version, security = [] }: DocumentOptions): Steps<OpenApiDocument> {
  const { bindings } = createTranscoder([LanceNamespaceService]);
  yield;
  const schemas = createSchemas(fieldsElsewhere(bindings));
  const paths: Record<string, Record<string, unknown>> = {};
  for (const ofMethod of Map.groupBy(bindings, ({ method }) => method).values()) {
    for (const [index, binding] of ofMethod.entries()) {
      const path = pathOf(binding);
      const operation = operationOf(binding, index + 1, schemas);
      paths[path] = { ...paths[path], [binding.httpMethod.toLowerCase()]: operation };
    }
    yield;
  }
  const responses = errorResponses(schemas, ErrorResponseSchema);
  const schemes = securityOf(security);
  return {
    openapi: "3.1.1",
    ...{ info: { ...INFO, version }, servers: [{ url: "/" }], ...schemes.document },
    ...{ tags: [...new Set(bindings.map(tagOf))].map((name) => ({ name })), paths },
    components: { schemas: schemas.components, responses, ...schemes.components },
  };
}

const INFO = {
  title: "Lance Namespace API",
  description: commentOf(LanceNamespaceService),
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
};

/** Returns, for a request, the names of the fields that every path of its method has, and that of the delimiter. */
function fieldsElsewhere(bindings: readonly Binding[]): (message: DescMessage) => ReadonlySet<string> {
  const byInput = Map.groupBy(bindings, ({ method }) => method.input);
  return (message) => {
    const inPaths = (byInput.get(message) ?? []).map(
      ({ template }) => new Set(template.variables.map(({ field }) => field)),
    );
    const [first, ...others] = inPaths;
    if (first === undefined) return NONE;
    return others.reduce((common, each) => common.intersection(each), first).union(IN_QUERY);
  };
}

const NONE: ReadonlySet<string> = new Set();
const IN_QUERY: ReadonlySet<string> = new Set([DELIMITER]);

/** Ways in which callers prove who they are. */
export type SecurityWay = "api-key" | "oidc" | "kubernetes" | "mtls";

const SCHEMES = {
  "api-key": ["ApiKey", { type: "apiKey", in: "header", name: "x-api-key" }],
  oidc: ["Token", { type: "http", scheme: "bearer", bearerFormat: "JWT" }],
  kubernetes: ["Token", { type: "http", scheme: "bearer", bearerFormat: "JWT" }],
  mtls: ["Certificate", { type: "mutualTLS" }],
} as const satisfies Record<SecurityWay, readonly [string, object]>;

/** Schemes of security, of which a request needs one. */
interface Security {
  /** Members of the components. */
  readonly components: { readonly securitySchemes?: Readonly<Record<string, object>> };
  /** Members of the document. */
  readonly document: { readonly security?: readonly object[] };
}

/** Returns what a document says about the given ways; nothing without any. */
function securityOf(ways: readonly SecurityWay[]): Security {
  if (ways.length === 0) return { components: {}, document: {} };
  const securitySchemes = Object.fromEntries(ways.map((way) => SCHEMES[way]));
  const security = Object.keys(securitySchemes).map((name) => ({ [name]: [] }));
  return { components: { securitySchemes }, document: { security } };
}

/** Bytes; the schema of OpenAPI 3.1 for a body that is not text is empty. */
const BYTES: Schema = {};

/** Rows as JSON: an array of objects, and text with an object in each line. */
const ROWS: Readonly<Record<string, { readonly schema: Schema }>> = {
  [ROW_TYPES.array]: { schema: { type: "array", items: { type: "object" } } },
  [ROW_TYPES.lines]: { schema: { type: "string" } },
};

/**
 * Returns the operation of a binding.
 *
 * @param number number of the binding among those of its method, from 1.
 */
function operationOf(binding: Binding, number: number, schemas: Schemas): unknown {
  const { method } = binding;
  const request = requestOf(binding, schemas);
  return {
    operationId: number === 1 ? method.name : `${method.name}_${number}`,
    summary: wordsOf(method.name),
    ...described(method),
    tags: [tagOf(binding)],
    parameters: parametersOf(binding, schemas),
    ...(request !== undefined && { requestBody: request }),
    responses: { [binding.successStatus]: answerOf(binding, schemas), ...errorsOf(method) },
  };
}

/** Returns the group of an operation: the file of the contract that has its messages. */
function tagOf({ method }: Binding): string {
  const file = method.input.file.name.split("/").at(-1) as string;
  return file.charAt(0).toUpperCase() + file.slice(1);
}

function requestOf({ method, requestBody, requestField, template }: Binding, schemas: Schemas): unknown {
  if (requestBody === "none") return undefined;
  // An upload of Arrow is a file or a stream; the gateway recognises both by their bytes.
  if (requestBody === "raw")
    return {
      required: true,
      content: { [ARROW_STREAM]: { schema: BYTES }, [ARROW_FILE]: { schema: BYTES } },
    };
  const inPath = new Set(template.variables.map(({ field }) => field));
  const fields = requestField === undefined ? method.input.fields : [requestField];
  const schema = requestField === undefined ? schemas.message(method.input) : schemas.field(requestField);
  const required = fields.some((field) => isRequired(field) && !inPath.has(field.name));
  return { required, content: { "application/json": { schema } } };
}

function answerOf(
  { method, responseBody, responseField, successStatus }: Binding,
  schemas: Schemas,
): unknown {
  const description = STATUS_CODES[successStatus] ?? "";
  switch (responseBody) {
    case "empty":
      return { description };
    case "raw":
      return {
        description,
        content: { [ARROW_FILE]: { schema: BYTES }, [ARROW_STREAM]: { schema: BYTES }, ...ROWS },
      };
    case "json": {
      const isWhole = responseField === undefined;
      const schema = isWhole ? schemas.message(method.output) : schemas.field(responseField);
      return { description, content: { "application/json": { schema } } };
    }
  }
}

function wordsOf(name: string): string {
  const words = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Errors that every operation can answer; the comments of the contract name the others. */
const COMMON: ReadonlySet<string> = new Set<ErrorName>([
  "Unsupported",
  "InvalidInput",
  "PermissionDenied",
  "Unauthenticated",
  "ServiceUnavailable",
  "Internal",
  "Throttling",
  "UnsupportedMediaType",
  "PayloadTooLarge",
  "DeadlineExceeded",
  "OutcomeUnknown",
]);

/** Returns the errors of an operation by their statuses, each with the names that it can have. */
function errorsOf(method: DescMethod): Readonly<Record<string, unknown>> {
  const named = new Set((commentOf(method) ?? "").match(/\b[A-Z]\w+/g));
  const entries = ERROR_TABLE.filter(({ name }) => COMMON.has(name) || named.has(name));
  return Object.fromEntries(
    [...byStatus(entries)].map(([status, rows]) => [
      status,
      { $ref: `#/components/responses/${componentName(status)}`, description: namesOf(rows) },
    ]),
  );
}

/** Returns an answer for each status of the error table, with an example of each row. */
function errorResponses(schemas: Schemas, body: DescMessage): Readonly<Record<string, unknown>> {
  const schema = schemas.message(body);
  return Object.fromEntries(
    [...byStatus(ERROR_TABLE)].map(([status, rows]) => {
      const examples = Object.fromEntries(rows.map((row) => [row.name, { value: exampleOf(row) }]));
      const content = { "application/json": { schema, examples } };
      return [componentName(status), { description: namesOf(rows), content }];
    }),
  );
}

function byStatus(rows: readonly ErrorEntry[]): Map<number, ErrorEntry[]> {
  return Map.groupBy(rows, ({ httpStatus }) => httpStatus);
}

function componentName(status: number): string {
  return `Error${status}`;
}

function namesOf(rows: readonly ErrorEntry[]): string {
  return rows.map(({ name, code }) => `${name} (code ${code})`).join(", ");
}

function exampleOf({ code, name, type, title, httpStatus: status }: ErrorEntry): unknown {
  const instance = "/v1/table/a%24b/describe";
  return { error: "what was wrong, and where", code, kind: name, type, title, status, detail: "", instance };
}
