import type { DescMessage } from "@bufbuild/protobuf";
import { ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Steps } from "../../runtime/pace.ts";
import type { Binding } from "../../transcode/binding.ts";
import { createTranscoder } from "../../transcode/transcoder.ts";
import { commentOf } from "./comments.ts";
import { errorResponses } from "./errors.ts";
import { operationOf, tagOf } from "./operations.ts";
import { DELIMITER, pathOf } from "./parameters.ts";
import { createSchemas } from "./schemas.ts";
import { type SecurityWay, securityOf } from "./security.ts";

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
