import { STATUS_CODES } from "node:http";
import { ARROW_FILE, ARROW_STREAM, ROW_TYPES } from "../../arrow/ipc/ipc-forms.ts";
import type { Binding } from "../../transcode/binding.ts";
import { isRequired } from "../../transcode/descriptors.ts";
import { described } from "./comments.ts";
import { errorsOf } from "./errors.ts";
import { parametersOf } from "./parameters.ts";
import type { Schema, Schemas } from "./schemas.ts";

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
export function operationOf(binding: Binding, number: number, schemas: Schemas): unknown {
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
export function tagOf({ method }: Binding): string {
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
