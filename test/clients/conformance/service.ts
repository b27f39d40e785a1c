import { setTimeout as sleep } from "node:timers/promises";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { type Any, anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import type { Call } from "../../../src/namespace/call/call.ts";
import { type ErrorEntry, errorEntry, LanceError } from "../../../src/namespace/errors.ts";
import type { ErrorDetail } from "../../../src/wires/grpc/status.ts";
import { onlyRequest, type Rpc } from "../../../src/wires/rpc.ts";

const PACKAGE = "connectrpc.conformance.v1";

interface Header {
  readonly name: string;
  readonly value: readonly string[];
}

interface GivenError {
  readonly code: number;
  readonly message?: string;
  readonly details: readonly Any[];
}

/** Answer that a request asks for; calls with a single response have it in `response`. */
interface Definition {
  readonly responseHeaders: readonly Header[];
  readonly responseTrailers: readonly Header[];
  readonly responseDelayMs: number;
  readonly response?: { case: "responseData"; value: Uint8Array } | { case: "error"; value: GivenError };
  readonly responseData?: readonly Uint8Array[];
  readonly error?: GivenError;
}

type Request = Message & { readonly responseDefinition?: Definition; readonly fullDuplex?: boolean };

/** An error with any code and any details. */
class GivenFailure extends LanceError {
  override readonly entry: ErrorEntry;
  readonly details: readonly ErrorDetail[];

  constructor({ code, message = "" }: GivenError, details: readonly ErrorDetail[]) {
    super("Internal", message);
    this.entry = { ...errorEntry("Internal"), grpcCode: code };
    this.details = details;
  }
}

/** Lists the details that a request asks for; what the wires find wrong themselves has none here. */
export function detailsOf(error: LanceError): readonly ErrorDetail[] {
  return error instanceof GivenFailure ? error.details : [];
}

/** Creates the suite's service, as its `service.proto` describes it. */
export function conformanceRpcs(registry: Registry): Rpc[] {
  const service = registry.getService(`${PACKAGE}.ConformanceService`);
  if (service === undefined) throw new Error("the descriptors have no ConformanceService");
  const methods = service.methods.filter(({ name }) => name !== "Unimplemented");
  const requestInfo = described("ConformancePayload.RequestInfo");

  function described(name: string): DescMessage {
    const found = registry.getMessage(`${PACKAGE}.${name}`);
    if (found === undefined) throw new Error(`the descriptors have no ${name}`);
    return found;
  }

  function infoOf(method: DescMethod, requests: readonly Request[], call: Call): Message {
    const { deadline, headers } = call;
    const pairs = Object.entries(headers);
    return create(requestInfo, {
      requestHeaders: pairs.map(([name, value]) => ({ name, value: value.split(/, ?/) })),
      ...(deadline && { timeoutMs: BigInt(Math.max(0, Math.round(deadline - Date.now()))) }),
      requests: requests.map((request) => anyPack(method.input, request)),
    }) as Message;
  }

  function failure(given: GivenError, info?: Message): GivenFailure {
    const details = given.details.map((any) => {
      const value = anyUnpack(any, registry) as Message;
      return { desc: registry.getMessage(value.$typeName) as DescMessage, value };
    });
    return new GivenFailure(given, [...details, ...(info ? [{ desc: requestInfo, value: info }] : [])]);
  }

  function announce(definition: Definition | undefined, call: Call): void {
    for (const { name, value } of definition?.responseHeaders ?? [])
      call.responseHeaders[name.toLowerCase()] = value.join(", ");
    const trailers = (definition?.responseTrailers ?? []).map(({ name, value }) => [
      name.toLowerCase(),
      value.join(", "),
    ]);
    call.responseTrailers = Object.fromEntries(trailers);
  }

  /** The payload of an answer, or that of the next of several. */
  function payloadOf(method: DescMethod, data: Uint8Array | undefined, info?: Message): Message {
    const payload = { ...(data && { data }), ...(info && { requestInfo: info }) };
    return create(method.output, { payload }) as Message;
  }

  async function answer(method: DescMethod, requests: readonly Request[], call: Call): Promise<Message> {
    const definition = requests[0]?.responseDefinition;
    const info = infoOf(method, requests, call);
    announce(definition, call);
    await sleep(definition?.responseDelayMs);
    const { response } = definition ?? {};
    if (response?.case === "error") throw failure(response.value, info);
    return payloadOf(method, response?.value, info);
  }

  async function* stream(
    method: DescMethod,
    requests: AsyncIterable<Message> | readonly Message[],
    call: Call,
  ) {
    const seen: Request[] = [];
    let first: Request | undefined;
    let sent = 0;

    async function next(): Promise<Message> {
      const { responseData = [], responseDelayMs = 0 } = first?.responseDefinition ?? {};
      const isWhole = sent === 0 || first?.fullDuplex === true;
      await sleep(responseDelayMs);
      return payloadOf(
        method,
        responseData[sent++],
        isWhole ? infoOf(method, seen.splice(0), call) : undefined,
      );
    }
    const isLeft = () => sent < (first?.responseDefinition?.responseData?.length ?? 0);

    for await (const request of requests as AsyncIterable<Request> | readonly Request[]) {
      if (first === undefined) announce(request.responseDefinition, call);
      first ??= request;
      seen.push(request);
      if (!first.fullDuplex) continue;
      if (!isLeft()) break;
      yield await next();
    }
    while (isLeft()) yield await next();
    const error = first?.responseDefinition?.error;
    if (error !== undefined) throw failure(error, sent === 0 ? infoOf(method, seen, call) : undefined);
  }

  return methods.map((method): Rpc => {
    switch (method.methodKind) {
      case "unary":
        return {
          kind: "unary",
          method: method as DescMethodUnary,
          handle: (request, call) => answer(method, [request], call),
        };
      case "client_streaming":
        return {
          kind: "stream",
          method,
          async *handle(requests, call) {
            const all: Request[] = [];
            for await (const request of requests) all.push(request);
            yield await answer(method, all, call);
          },
        };
      case "server_streaming":
        return {
          kind: "stream",
          method,
          async *handle(requests, call) {
            yield* stream(method, [await onlyRequest(requests)], call);
          },
        };
      default:
        return { kind: "stream", method, handle: (requests, call) => stream(method, requests, call) };
    }
  });
}
