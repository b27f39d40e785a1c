import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  hasOption,
  type Message,
} from "@bufbuild/protobuf";
import type { UpstreamForm } from "../dialects/upstream.ts";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { HttpRule } from "../gen/google/api/http_pb.ts";
import { rest_method } from "../gen/lance/namespace/v1/options_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import { checkPathValue, parseTemplate, type Template } from "../namespace/operations/template.ts";
import { optionOf } from "../namespace/option.ts";
import { type AnswerReader, createAnswerReader, createPlainCheck, type IsPlain } from "./answer.ts";
import { HTTP_BODY, type MessageRecord, restName } from "./descriptors.ts";
import { createJsonDecoders, type JsonDecoders } from "./json/decode.ts";
import { createJsonEncoders, type EncodeJson, fieldReader, type JsonEncoders } from "./json/encode.ts";

/** How a method is called over HTTP: the counterpart of {@link Binding}. */
export interface ClientBinding {
  readonly method: DescMethod;
  /** HTTP method in capitals. */
  readonly httpMethod: string;
  /** Whether a request has a body, and whether it is JSON or raw bytes. */
  readonly requestBody: "none" | "json" | "raw";
  readonly responseBody: "json" | "raw" | "empty";
  /** Field of the response that the body is; undefined if it is the whole message. */
  readonly responseField: DescField | undefined;
  /** Local name of the response's field of type google.api.HttpBody, if the body is raw. */
  readonly rawResponseField: string | undefined;
  /** Kind of the path's resource, in its own word: `namespace`, `table`, … */
  readonly resource: string;
  /** The call by another HTTP method, for servers that do not support this one. */
  readonly alternative: ClientBinding | undefined;
  /** Returns the request target: the path with the query. */
  target(request: Message): string;
  /** Returns the JSON text of a body. */
  body(request: Message): string;
  /**
   * Reads the body of a success, unless it is raw.
   *
   * @throws LanceError ServiceUnavailable, naming what does not fit.
   */
  read: AnswerReader;
  /** Whether the answer as a whole message may pass through as its text. */
  isPlain: IsPlain;
}

/** Fields that requests share and that travel as headers, or not at all, without a JSON body. */
const OUTSIDE_QUERIES: ReadonlySet<string> = new Set(["id", "identity", "context"]);

/**
 * Compiles the bindings that call the methods of services; a method without an annotation has none.
 *
 * @throws Error, naming the method, for an unusable annotation.
 */
export function createClientBindings(
  methods: readonly DescMethod[],
  form: UpstreamForm,
): ReadonlyMap<DescMethod, ClientBinding> {
  const codecs: Codecs = {
    form,
    decoders: createJsonDecoders(form.forms, true),
    encoders: createJsonEncoders(form.forms),
  };
  const bindings = new Map<DescMethod, ClientBinding>();
  for (const method of methods) {
    if (!hasOption(method, http)) continue;
    const rule = optionOf(method, http);
    const other = rule.additionalBindings.find(
      ({ pattern }) => pattern.value === rule.pattern.value && pattern.case !== rule.pattern.case,
    );
    const alternative = other && compile(method, other, codecs, undefined);
    bindings.set(method, compile(method, rule, codecs, alternative));
  }
  return bindings;
}

interface Codecs {
  readonly form: UpstreamForm;
  readonly decoders: JsonDecoders;
  readonly encoders: JsonEncoders;
}

function compile(
  method: DescMethod,
  rule: HttpRule,
  { form, decoders, encoders }: Codecs,
  alternative: ClientBinding | undefined,
): ClientBinding {
  const { input, output } = method;
  const { pattern } = rule;
  if (pattern.case === undefined) throw new Error(`${method} has no HTTP method`);
  const template = parseTemplate(pattern.value);
  const bodiless = rule.body === "" || form.bodiless.has(input.typeName);
  const bodyField =
    bodiless || rule.body === "*" ? undefined : input.fields.find(({ name }) => name === rule.body);
  const requestBody = bodiless ? "none" : bodyField?.message?.typeName === HTTP_BODY ? "raw" : "json";
  const responseField = output.fields.find(({ name }) => name === rule.responseBody);
  const rawResponse = responseField?.message?.typeName === HTTP_BODY;
  const inPath = new Set(template.variables.map(({ field }) => field));

  const path = createPathWriter(template, input, form.slashedPaths);
  const query = createQueryWriter(input, input.fields.filter(isInQuery), encoders);
  const encode = encoderOf();
  const isPlain = createPlainCheck(output, form.forms);
  const literal = template.segments.filter((segment) => typeof segment === "object");

  function isInQuery(field: DescField): boolean {
    if (inPath.has(field.name) || field === bodyField || !fitsQuery(field)) return false;
    if (field.localName === "delimiter") return form.tellsDelimiter;
    if (!bodiless && rule.body === "*")
      return form.alsoInQuery.get(input.typeName)?.includes(field.localName) ?? false;
    return !OUTSIDE_QUERIES.has(field.localName);
  }

  function encoderOf(): EncodeJson {
    if (requestBody !== "json") return () => "";
    if (bodyField !== undefined) return encoders.field(bodyField);
    const elsewhere = input.fields.filter(({ name }) => inPath.has(name) || name === "delimiter");
    return encoders.object(input, new Set(elsewhere.map(({ localName }) => localName)));
  }

  return {
    method,
    httpMethod: pattern.case.toUpperCase(),
    requestBody,
    responseBody: optionOf(method, rest_method).emptyResponse ? "empty" : rawResponse ? "raw" : "json",
    responseField,
    rawResponseField: rawResponse ? responseField?.localName : undefined,
    resource: (literal[1] ?? { literal: "" }).literal,
    alternative,
    target: (request) => withQuery(path(request as Message & MessageRecord), query, request),
    body: encode,
    isPlain,
    read: rawResponse ? () => create(output) : createAnswerReader(method, responseField, decoders, isPlain),
  };
}

function withQuery(path: string, query: QueryWriter, request: Message): string {
  const text = query(request as Message & MessageRecord);
  return text === "" ? path : `${path}?${text}`;
}

/**
 * Compiles the writer of a path from a template and the fields of a message.
 *
 * @param slashedPaths prefix of the paths that end with a slash.
 * @throws Error if the template needs more than a request has. The writer throws LanceError InvalidInput for a value
 *   that is empty, not Unicode, or a dot segment.
 */
function createPathWriter(
  template: Template,
  message: DescMessage,
  slashedPaths: string | undefined,
): (request: MessageRecord) => string {
  const parts: (string | { readonly local: string; readonly name: string })[] = [];
  let literal = "";
  for (const [index, segment] of template.segments.entries()) {
    if (typeof segment === "object") {
      literal += `/${segment.literal}`;
      continue;
    }
    const variable = template.variables.find(({ start, end }) => start === index && end === index + 1);
    const field = message.fields.find(({ name }) => name === variable?.field);
    if (field === undefined) throw new Error(`path template "${template.source}" cannot be filled`);
    parts.push(`${literal}/`, { local: field.localName, name: restName(field) });
    literal = "";
  }
  if (slashedPaths !== undefined && template.source.startsWith(slashedPaths)) literal += "/";
  parts.push(literal);

  return (request) => {
    let path = "";
    for (const part of parts) {
      path += typeof part === "string" ? part : escaped(String(request[part.local]), part.name);
    }
    return path;
  };
}

/** Most names: no dot, which a segment of dots needs, and nothing to escape but the delimiter. */
const USUAL = /^[\w$-]+$/;

function escaped(value: string, name: string): string {
  if (USUAL.test(value)) return value.replaceAll("$", "%24");
  if (value === "") throw new LanceError("InvalidInput", `field ${JSON.stringify(name)} must not be empty`);
  checkPathValue(value, name);
  try {
    return encodeURIComponent(value);
  } catch (cause) {
    throw new LanceError("InvalidInput", `field ${JSON.stringify(name)} must be well-formed Unicode`, {
      cause,
    });
  }
}

/** Writes fields of a message as a query string without its question mark; it omits unset fields. */
type QueryWriter = (message: MessageRecord) => string;

/** Whether a query string can hold a field: a scalar, an enum, a list of these, or a map. */
function fitsQuery(field: DescField): boolean {
  return field.message === undefined || field.fieldKind === "map";
}

/** Longest query string, in characters: no server takes longer ones, and escaping 16 MiB takes half a second. */
const MAX_LENGTH = 64 * 1024;

function checkLength(text: string): string {
  if (text.length <= MAX_LENGTH) return text;
  const limit = `the parameters of this call are in a URL at the upstream catalog, and may have ${MAX_LENGTH} characters`;
  throw new LanceError("InvalidInput", limit);
}

/**
 * Compiles the writer of the query string for some fields of a message, as {@link createQueryBinder} reads it. The writer throws
 * LanceError InvalidInput for a message whose query string would be too long.
 */
function createQueryWriter(
  message: DescMessage,
  fields: readonly DescField[],
  encoders: JsonEncoders,
): QueryWriter {
  const writers = fields.map((field) => {
    const read = fieldReader(field, false);
    const write = parameterWriter(field, encoders);
    return (record: MessageRecord) => {
      const value = read(record);
      return value === undefined ? "" : write(value);
    };
  });
  if (fields.some((field) => field.parent !== message))
    throw new Error(`a field is not ${message.typeName}'s`);
  return (record) => {
    let query = "";
    for (const write of writers) {
      const parameter = write(record);
      if (parameter !== "") query += query === "" ? parameter : `&${parameter}`;
    }
    return checkLength(query);
  };
}

function parameterWriter(field: DescField, encoders: JsonEncoders): (value: unknown) => string {
  const name = `${encodeURIComponent(restName(field))}=`;
  if (field.fieldKind === "map") {
    const encode = encoders.value(field);
    return (value) => name + encodeURIComponent(checkLength(encode(value)));
  }
  const text = textWriter(encoders.item(field));
  if (field.fieldKind !== "list") return (value) => name + text(value);
  return (list) => {
    let written = "";
    for (const item of list as unknown[]) {
      written += written === "" ? name + text(item) : `&${name}${text(item)}`;
      checkLength(written);
    }
    return written;
  };
}

/** Longest text that a writer remembers, in characters. */
const MAX_REMEMBERED_LENGTH = 8;

/** Returns a writer without the quotes that JSON has around texts. It remembers the last short text: all calls write the same delimiter. */
function textWriter(encode: EncodeJson): (value: unknown) => string {
  let [last, lastWritten] = ["", ""];
  return (value) => {
    if (value === last && last !== "") return lastWritten;
    const json = checkLength(encode(value));
    const written = encodeURIComponent(json.startsWith('"') ? (JSON.parse(json) as string) : json);
    if (typeof value === "string" && value.length <= MAX_REMEMBERED_LENGTH)
      [last, lastWritten] = [value, written];
    return written;
  };
}
