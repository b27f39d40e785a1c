import { create, type DescField, type DescMessage, type DescMethod, type Message } from "@bufbuild/protobuf";
import type { Dialect } from "../dialects/dialect.ts";
import type { HttpRule } from "../gen/google/api/http_pb.ts";
import { rest_method } from "../gen/lance/namespace/v1/options_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import { passedBody } from "../namespace/messages/passed-answer.ts";
import { parseTemplate, type Template } from "../namespace/operations/template.ts";
import { optionOf } from "../namespace/option.ts";
import type { Steps } from "../runtime/pace.ts";
import { isJsonObject } from "../runtime/text.ts";
import { HTTP_BODY, isRequired, type MessageRecord, restName } from "./descriptors.ts";
import { FieldError, InexactNumberError, toInvalidInput, within } from "./field-error.ts";
import type { DecodeJson, JsonDecoders } from "./json/decode.ts";
import type { EncodeJson, JsonEncoders } from "./json/encode.ts";
import { type JsonPieces, piecesOf, type StepEncoder } from "./json/encode-steps.ts";
import { type ParsedJson, parseJson, parseRequestExactly } from "./json/parse.ts";
import { refuseRepeatedNames } from "./json/repeated-names.ts";
import { compileVariable, createQueryBinder } from "./url-values.ts";

/** A way to call a method over HTTP, compiled from its annotation. */
export interface Binding {
  readonly method: DescMethod;
  /** HTTP method in capitals. */
  readonly httpMethod: string;
  readonly template: Template;
  /** Whether a request has a body, and whether it is JSON or raw bytes. */
  readonly requestBody: "none" | "json" | "raw";
  /** Field of the request that the body is; undefined if it is the whole message, or if there is none. */
  readonly requestField: DescField | undefined;
  /** Local name of the request's field of type google.api.HttpBody, if the body is raw. */
  readonly rawRequestField: string | undefined;
  readonly responseBody: "json" | "raw" | "empty";
  /** Field of the response that the body is; undefined if it is the whole message, or if there is none. */
  readonly responseField: DescField | undefined;
  /** Local name of the response's field of type google.api.HttpBody, if the body is raw. */
  readonly rawResponseField: string | undefined;
  /** Whether a client of the dialect understands an answer in the specification's JSON. */
  readonly takesJson: boolean;
  /** HTTP status of a success. */
  readonly successStatus: number;
  /** Returns the HTTP status of an answer, which may be another one in a dialect. */
  statusOf(response: Message): number;
  /**
   * Builds the request; the caller handles a raw body.
   *
   * @param segments the path's segments as they were sent.
   * @param query the query string without its question mark.
   * @param body the JSON, a text or its value; undefined or empty if there is none.
   * @throws LanceError InvalidInput, naming what does not fit.
   */
  decode(segments: readonly string[], query: string, body: string | ParsedJson | undefined): Message;
  /** Returns the JSON text of a response; empty unless the response's body is JSON. */
  encode(response: Message): string;
  /** Returns the steps that write that text; undefined if the response is short, or its text is known. */
  encodeLong(response: Message): Steps<JsonPieces> | undefined;
}

/** Compilers that all bindings share. */
export interface Codecs {
  readonly forms: Dialect["forms"];
  readonly decoders: JsonDecoders;
  readonly encoders: JsonEncoders;
  readonly stepEncoders: (descriptor: DescMessage) => StepEncoder;
}

/**
 * Compiles a rule of a method.
 *
 * @throws Error, naming the method, if the rule does not fit it.
 */
export function compileBinding(method: DescMethod, rule: HttpRule, codecs: Codecs): Binding {
  try {
    return compile(method, rule, codecs);
  } catch (cause) {
    throw new Error(`${method.parent.typeName}.${method.name}: ${(cause as Error).message}`, { cause });
  }
}

function compile(
  method: DescMethod,
  rule: HttpRule,
  { forms, decoders, encoders, stepEncoders }: Codecs,
): Binding {
  const { input, output } = method;
  const { pattern } = rule;
  if (pattern.case === undefined) throw new Error("its rule has no HTTP method");
  const template = parseTemplate(pattern.value);
  const bodyField = rule.body === "" || rule.body === "*" ? undefined : fieldOf(input, rule.body, "body");
  const rawRequest = isHttpBody(bodyField) ? bodyField : undefined;
  const responseField =
    rule.responseBody === "" ? undefined : fieldOf(output, rule.responseBody, "response_body");
  const rawResponse = isHttpBody(responseField) ? responseField : undefined;
  checkStreaming(method, rawRequest !== undefined, rawResponse !== undefined);

  const variables = template.variables.map((variable) => {
    const field = fieldOf(input, variable.field, "path template");
    if (field === bodyField) throw new Error(`field "${field.name}" is both in the path and the body`);
    return compileVariable(field, variable, decoders);
  });
  const elsewhere = variables.map((variable) => variable.field);
  if (bodyField !== undefined) elsewhere.push(bodyField);
  const queryBinder = createQueryBinder(input, {
    excluded: new Set(elsewhere.map((field) => field.localName)),
    decoders,
    renamed: forms.get(input.typeName)?.parameters ?? {},
  });
  const inPath = new Set(variables.map((variable) => variable.name));
  const readBody =
    rule.body !== "" && rawRequest === undefined ? createBodyReader(input, bodyField, decoders) : undefined;
  const options = optionOf(method, rest_method);
  const encode = encoderOf();
  const settle = forms.get(input.typeName)?.settle;
  const statusIn = forms.get(method.output.typeName)?.status;
  const successStatus = options.successStatus || 200;

  function encoderOf(): EncodeJson | undefined {
    if (options.emptyResponse || rawResponse !== undefined) return undefined;
    return responseField === undefined ? encoders.message(output) : encoders.field(responseField);
  }
  const long = encode !== undefined && responseField === undefined ? stepEncoders(output) : undefined;

  function decode(
    segments: readonly string[],
    query: string,
    json: string | ParsedJson | undefined,
  ): Message {
    const values = queryBinder.parse(query);
    const isBound = (name: string) => inPath.has(name) || values.some(({ field }) => field.name === name);
    const body: JsonBody = readBody?.(json, isBound) ?? { message: create(input), json: undefined };
    const message = body.message as Message & MessageRecord;
    if (values.length > 0) queryBinder.apply(message, values);
    for (const variable of variables) variable.apply(message, segments, body.json);
    settle?.(message);
    return message;
  }

  return {
    method,
    httpMethod: pattern.case.toUpperCase(),
    template,
    requestBody: rawRequest !== undefined ? "raw" : readBody !== undefined ? "json" : "none",
    requestField: bodyField,
    rawRequestField: rawRequest?.localName,
    responseBody: rawResponse !== undefined ? "raw" : encode === undefined ? "empty" : "json",
    responseField,
    rawResponseField: rawResponse?.localName,
    takesJson: encode !== undefined && forms.size === 0,
    successStatus,
    statusOf: (response) => statusIn?.(response) ?? successStatus,
    decode,
    encode: (response) => passedBody(response, "json") ?? encode?.(response) ?? "",
    encodeLong(response) {
      if (long === undefined || passedBody(response, "json") !== undefined) return undefined;
      return long.mayBeLong(response) ? piecesOf(long.encode, response) : undefined;
    },
  };
}

function fieldOf(message: DescMessage, name: string, where: string): DescField {
  const field = message.fields.find((candidate) => candidate.name === name);
  if (field !== undefined) return field;
  const hint = name.includes(".") ? ", and fields of fields are not supported" : "";
  throw new Error(`${where} names "${name}", which is no field of ${message.typeName}${hint}`);
}

function isHttpBody(field: DescField | undefined): boolean {
  return field?.fieldKind === "message" && field.message.typeName === HTTP_BODY;
}

function checkStreaming(method: DescMethod, rawRequest: boolean, rawResponse: boolean): void {
  const { methodKind } = method;
  if (methodKind === "bidi_streaming") throw new Error("a stream in both directions has no form in REST");
  if ((methodKind === "client_streaming") !== rawRequest) {
    throw new Error(`a ${HTTP_BODY} as body goes with a stream of requests, and the one needs the other`);
  }
  if ((methodKind === "server_streaming") !== rawResponse) {
    throw new Error(
      `a ${HTTP_BODY} as response_body goes with a stream of responses, and the one needs the other`,
    );
  }
}

/** A request read from its body. */
interface JsonBody {
  readonly message: Message;
  /** The body's object, if the body is the whole message. */
  readonly json: Record<string, unknown> | undefined;
}

/**
 * Reads the JSON of a body, a text or its value. An empty text and `null` mean `{}`.
 *
 * @param isBound whether a field, by its REST name, has a value from the path or the query.
 * @throws LanceError InvalidInput
 */
type BodyReader = (body: string | ParsedJson | undefined, isBound: (name: string) => boolean) => JsonBody;

/**
 * Compiles the reader of a request's body.
 *
 * @param field the field that is the body, or undefined if the body is the whole message.
 */
function createBodyReader(
  input: DescMessage,
  field: DescField | undefined,
  decoders: JsonDecoders,
): BodyReader {
  return field === undefined
    ? wholeReader(decoders.message(input))
    : fieldReader(input, field, decoders.field(field));
}

function wholeReader(decode: DecodeJson): BodyReader {
  return (body, isBound) => {
    const read = (parsed: unknown): JsonBody => {
      const json = parsed ?? {};
      if (!isJsonObject(json)) throw new LanceError("InvalidInput", "request body must be a JSON object");
      return { message: decode(json, 0, isBound) as Message, json };
    };
    return readJson(body, read);
  };
}

function fieldReader(input: DescMessage, field: DescField, decode: DecodeJson): BodyReader {
  const objectLike = field.fieldKind === "map" || field.fieldKind === "message";
  const name = restName(field);
  return (body, isBound) => {
    const read = (parsed: unknown): JsonBody => {
      const message = create(input) as Message & MessageRecord;
      const json = parsed ?? (objectLike ? {} : undefined);
      if (json !== undefined) message[field.localName] = decode(json, 0);
      else if (isRequired(field) && !isBound(name)) throw within(name, new FieldError("is required"));
      return { message, json: undefined };
    };
    return readJson(body, read);
  };
}

function readJson(body: string | ParsedJson | undefined, read: (parsed: unknown) => JsonBody): JsonBody {
  try {
    if (body === undefined || body === "") return read(undefined);
    const isParsed = typeof body !== "string";
    const value = isParsed ? body.value : parseJson(body, "request body");
    refuseRepeatedNames(isParsed ? body.text : body, value, "request body");
    try {
      return read(value);
    } catch (thrown) {
      if (!(thrown instanceof InexactNumberError)) throw thrown;
      return read(isParsed ? parseRequestExactly(body.text, body.values) : parseRequestExactly(body));
    }
  } catch (thrown) {
    throw toInvalidInput(thrown, "field", "request body");
  }
}
