import { create, type DescField, type DescMethod, hasOption, type Message } from "@bufbuild/protobuf";
import type { UpstreamForm } from "../dialects/upstream.ts";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { HttpRule } from "../gen/google/api/http_pb.ts";
import { rest_method } from "../gen/lance/namespace/v1/options_pb.ts";
import { parseTemplate } from "../namespace/operations/template.ts";
import { optionOf } from "../namespace/option.ts";
import { type AnswerReader, createAnswerReader } from "./answer.ts";
import { HTTP_BODY, type MessageRecord } from "./descriptors.ts";
import { createJsonDecoders, type JsonDecoders } from "./json/decode.ts";
import { createJsonEncoders, type EncodeJson, type JsonEncoders } from "./json/encode.ts";
import { createPlainCheck, type IsPlain } from "./json/plain.ts";
import { createPathWriter, createQueryWriter, fitsQuery, type QueryWriter } from "./target-writer.ts";

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
