import { Agent } from "node:http";
import { create, type DescField, type DescMethod, type JsonValue, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { http } from "../../src/gen/google/api/annotations_pb.ts";
import { rest_method } from "../../src/gen/lance/namespace/v1/options_pb.ts";
import { bodyFieldOf } from "../../src/namespace/operations/method-facts.ts";
import { optionOf } from "../../src/namespace/option.ts";
import { CallError, createClient, type Headers, type ProtocolClient } from "./client.ts";
import { jsonOf, type RawAnswer, type RawRequest, sendHttp } from "./http.ts";
import { fieldToJson, fromRestJson, isRequired, restName } from "./rest-json.ts";

const ROOT = "$";

/** Creates a client of the REST API from the annotations of the contract, without any code of the gateway. */
export function createRestClient(port: number, headers: Headers = {}): ProtocolClient {
  const agent = new Agent({ keepAlive: true });

  async function send(method: DescMethod, message: Message, body?: AsyncIterable<Uint8Array>) {
    const request = restRequest(method, message, body);
    const answer = await sendHttp(port, { ...request, headers: { ...request.headers, ...headers }, agent });
    const success = optionOf(method, rest_method)?.successStatus || 200;
    if (answer.status === success) return answer;
    throw restError(answer);
  }

  const client = createClient({
    unary: async (method, message) => readAnswer(method, await send(method, message)),
    upload: async (method, message, body) => readAnswer(method, await send(method, message, body)),
    download: async (method, message) => {
      const { headers, bytes } = await send(method, message);
      return { contentType: headers["content-type"] ?? "", bytes };
    },
  });
  return { client, close: () => agent.destroy() };
}

/** Returns the HTTP request of a call, by the first rule of its method. */
export function restRequest(
  method: DescMethod,
  message: Message,
  upload?: AsyncIterable<Uint8Array>,
): RawRequest {
  const rule = optionOf(method, http);
  const view = reflect(method.input, message);
  const inPath = new Set(["identifier"]);
  const path = String(rule.pattern.value).replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    inPath.add(name);
    return encodeURIComponent(name === "identifier" ? identifierOf(message) : String(jsonField(name)));
  });
  function jsonField(name: string): JsonValue {
    return fieldToJson(view, method.input.fields.find((field) => field.name === name) as DescField);
  }

  const inBody = (field: DescField) => field.name !== "delimiter" && rule.body === "*";
  const rest = method.input.fields.filter(
    (field) => (view.isSet(field) || isRequired(field)) && !inPath.has(field.name),
  );
  const query = new URLSearchParams();
  for (const field of rest) {
    if (inBody(field) || field.name === "id" || field.name === rule.body) continue;
    const value = fieldToJson(view, field);
    for (const item of Array.isArray(value) ? value : [value]) {
      query.append(restName(field), typeof item === "object" ? JSON.stringify(item) : String(item));
    }
  }
  const target = query.size === 0 ? path : `${path}?${query}`;
  const options = { method: (rule.pattern.case ?? "").toUpperCase(), path: target };
  if (upload !== undefined) {
    return { ...options, body: upload, headers: { "content-type": "application/vnd.apache.arrow.stream" } };
  }
  if (rule.body === "") return options;
  const json =
    rule.body === "*"
      ? Object.fromEntries(rest.filter(inBody).map((field) => [restName(field), fieldToJson(view, field)]))
      : jsonField(rule.body);
  return { ...options, body: JSON.stringify(json), headers: { "content-type": "application/json" } };
}

function identifierOf(message: Message): string {
  const { identifier, id, delimiter } = message as { identifier?: string; id?: string[]; delimiter?: string };
  const separator = delimiter ?? ROOT;
  return identifier || (id !== undefined && id.length > 0 ? id.join(separator) : separator);
}

function readAnswer(method: DescMethod, { bytes }: RawAnswer): Message {
  if (optionOf(method, rest_method)?.emptyResponse) {
    if (bytes.length > 0) throw new Error(`${method.name} answered a body: ${bytes}`);
    return create(method.output);
  }
  const json = JSON.parse(bytes.toString()) as JsonValue;
  const field = optionOf(method, http).responseBody;
  if (field === "" || field === bodyFieldOf(method.output)) return fromRestJson(method.output, json);
  return fromRestJson(method.output, { [field]: json });
}

function restError(answer: RawAnswer): CallError {
  const { code, error } = jsonOf(answer);
  return new CallError(String(error), { code: code as number | undefined, httpStatus: answer.status });
}
