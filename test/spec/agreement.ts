import { type DescField, type DescFile, type DescMessage, getOption } from "@bufbuild/protobuf";
import { ARROW_FILE, ARROW_STREAM } from "../../src/arrow/ipc/ipc-forms.ts";
import { http } from "../../src/gen/google/api/annotations_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import type { Binding } from "../../src/transcode/binding.ts";
import { isImplicit, isRequired, restName } from "../../src/transcode/descriptors.ts";
import { createTranscoder } from "../../src/transcode/transcoder.ts";
import {
  type Body,
  type Parameter,
  type Schema,
  type SpecOperation,
  schemaAt,
  schemaNamed,
  schemaNames,
  specOperations,
} from "./document.ts";
import { disagreements, shapeOf, shapeOfMessage } from "./shape.ts";

/** Findings of a comparison of the document with the contract. */
export interface Agreement {
  /** Each difference, as `place: what`. */
  readonly differences: readonly string[];
  /** Parts of the contract that the document lacks: `Message.field` and `Operation METHOD path`. */
  readonly additions: readonly string[];
  /** Schemas that match nothing in the contract. */
  readonly unmatched: readonly string[];
  /** Number of compared parts of each kind. */
  readonly counts: Readonly<Record<"operations" | "parameters" | "schemas" | "properties", number>>;
}

/** The field that the path's `{id}` sets. */
const PATH_ID = "identifier";

const messages = [...filesOf(LanceNamespaceService.file)].flatMap((file) => file.messages);

/** Walks the whole document and looks for everything in the compiled contract. */
export function compareWithDocument(): Agreement {
  const differences: string[] = [];
  const known = new Map<DescMessage, Set<string>>();
  const compared = new Map<string, DescMessage>();
  const seenRoutes = new Set<string>();
  const counts = { operations: 0, parameters: 0, schemas: 0, properties: 0 };
  const { bindings } = createTranscoder([LanceNamespaceService]);

  for (const operation of specOperations) compareOperation(operation);
  const unmatched: string[] = [];
  for (const name of schemaNames) if (!compared.has(name)) compareByName(name);
  return { differences, additions: additions(), unmatched, counts };

  function compareOperation(operation: SpecOperation): void {
    counts.operations++;
    const path = operation.path.replace("{id}", `{${PATH_ID}}`);
    const route = `${operation.httpMethod} ${path}`;
    const binding = bindings.find((each) => `${each.httpMethod} ${each.template.source}` === route);
    if (binding === undefined) {
      differences.push(`${operation.id}: no route ${route}`);
      return;
    }
    seenRoutes.add(`${binding.method.name} ${route}`);
    if (binding.method.name !== operation.id)
      differences.push(`${operation.id}: ${binding.method.name} here`);
    const { input, output } = binding.method;
    for (const parameter of operation.parameters) compareParameter(operation, binding, parameter);
    const { request, success } = operation;
    if (success.status !== binding.successStatus) {
      differences.push(`${operation.id}: status ${success.status} there, ${binding.successStatus} here`);
    }
    const rule = getOption(binding.method, http);
    const place = `${operation.id} request`;
    if (request !== undefined)
      compareBody(place, request, binding.requestBody, input, rule.body, ARROW_STREAM);
    const answer = `${operation.id} answer`;
    if (success.body === undefined) {
      if (binding.responseBody !== "empty")
        differences.push(`${answer}: none there, ${binding.responseBody} here`);
    } else compareBody(answer, success.body, binding.responseBody, output, rule.responseBody, ARROW_FILE);
  }

  function compareParameter(operation: SpecOperation, binding: Binding, parameter: Parameter): void {
    counts.parameters++;
    const name = parameter.in === "path" && parameter.name === "id" ? PATH_ID : parameter.name;
    const place = `${operation.id} parameter ${parameter.name}`;
    const field = binding.method.input.fields.find((each) => restName(each) === name);
    if (field === undefined) {
      differences.push(`${place}: missing here`);
      return;
    }
    saw(binding.method.input, name);
    const inPath = binding.template.variables.some((variable) => variable.field === field.name);
    if (inPath !== (parameter.in === "path")) differences.push(`${place}: in the ${parameter.in} there only`);
    // A field in the path is always there; the annotation is for those that can be left out.
    if (!inPath && parameter.required !== isRequired(field))
      differences.push(`${place}: ${requiredThere(parameter.required)}`);
    compareParameterType(place, parameter.schema, field);
  }

  function compareParameterType(place: string, schema: Schema, field: DescField): void {
    // A map travels in a query as one text that is a JSON object.
    const isJsonText =
      field.fieldKind === "map" && schema.description?.includes("single JSON-encoded query parameter");
    if (!isJsonText) report(place, schema, field);
  }

  function compareBody(
    place: string,
    body: Body,
    form: Binding["requestBody"] | Binding["responseBody"],
    message: DescMessage,
    part: string,
    arrow: string,
  ): void {
    const mediaType = { json: "application/json", raw: arrow, none: "", empty: "" }[form];
    if (body.mediaType !== mediaType)
      differences.push(`${place}: ${body.mediaType} there, ${mediaType} here`);
    if (form === "raw") {
      saw(message, part);
      return;
    }
    const shape =
      part === "" || part === "*" ? shapeOfMessage(message) : shapeOf(message.field[part] as DescField);
    for (const what of disagreements(body.schema, shape, compareMessage))
      differences.push(`${place}: ${what}`);
  }

  function compareByName(name: string): void {
    const schema = schemaNamed(name);
    // Only objects have messages; other schemas are compared where an object refers to them.
    if (schema.properties === undefined) return;
    const message = messages.find((each) => each.name === name);
    if (message === undefined) unmatched.push(name);
    else compareMessage(schema, message);
  }

  function compareMessage(schema: Schema, message: DescMessage): void {
    const key = schema.name ?? `part of ${message.name}`;
    if (compared.get(key) === message) return;
    compared.set(key, message);
    counts.schemas++;
    for (const [name, node] of Object.entries(schema.properties ?? {})) {
      counts.properties++;
      const place = `${key}.${name}`;
      const field = message.fields.find((each) => restName(each) === name);
      if (field === undefined) {
        differences.push(`${place}: missing here`);
        continue;
      }
      saw(message, name);
      const required = schema.required?.includes(name) === true;
      // An answer may promise more than the document asks for.
      const promised = message.name.endsWith("Response") && isRequired(field);
      if (required !== isRequired(field) && !promised)
        differences.push(`${place}: ${requiredThere(required)}`);
      if (!required && !promised && isImplicit(field) && field.fieldKind === "scalar") {
        differences.push(`${place}: may be absent there, cannot be told from its zero here`);
      }
      report(place, schemaAt(node), field);
    }
  }

  function report(place: string, schema: Schema, field: DescField): void {
    for (const what of disagreements(schema, shapeOf(field), compareMessage))
      differences.push(`${place}: ${what}`);
  }

  function saw(message: DescMessage, name: string): void {
    const names = known.get(message) ?? new Set();
    known.set(message, names.add(name));
  }

  function additions(): string[] {
    const fields = [...known].flatMap(([message, names]) =>
      message.fields
        .map(restName)
        .filter((name) => !names.has(name))
        .map((name) => `${message.name}.${name}`),
    );
    const routes = bindings
      .map((binding) => `${binding.method.name} ${binding.httpMethod} ${binding.template.source}`)
      .filter((route) => !seenRoutes.has(route));
    return [...fields, ...routes];
  }
}

function filesOf(file: DescFile): Set<DescFile> {
  return new Set([file, ...file.dependencies.flatMap((each) => [...filesOf(each)])]);
}

function requiredThere(required: boolean): string {
  return required ? "required there, optional here" : "optional there, required here";
}
