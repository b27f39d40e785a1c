import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { pino } from "pino";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, createCall } from "../../namespace/call.ts";
import { createDescribeCache, type DescribeCacheOptions } from "./cache.ts";

const log = pino({ level: "silent" });

export const { method: METHODS } = LanceNamespaceService;

/** A call as the pipeline hands it to a backend. */
export function callOf(method: DescMethod, id: readonly string[], overrides: Partial<Call> = {}): Call {
  const call = createCall({
    method,
    protocol: "grpc",
    requestId: "test",
    headers: {},
    signal: new AbortController().signal,
    deadline: undefined,
    accept: undefined,
    log,
  });
  return Object.assign(call, { id }, overrides);
}

/** What answers behind a cache. */
export type Behind = (request: Message, call: Call) => Promise<Message>;

/** A cache with a clock of its own before one function for all methods. */
export function createCached(behind: Behind, options: Partial<DescribeCacheOptions> = {}) {
  let time = 0;
  const methods = LanceNamespaceService.methods;
  const cache = createDescribeCache({
    ttlMs: 1000,
    principalOf: ({ headers }) => ["authorization", headers["authorization"] ?? ""],
    now: () => time,
    ...options,
  });
  const handlers = cache(methods, Object.fromEntries(methods.map(({ localName }) => [localName, behind])));

  return {
    advance(ms: number) {
      time += ms;
    },
    /** Calls a method with one request and one answer. */
    ask(method: DescMethod, id: readonly string[], overrides: Partial<Call> = {}, init: object = {}) {
      const handler = handlers[method.localName] as Behind;
      return handler(create(method.input, { id: [...id], ...init } as never), callOf(method, id, overrides));
    },
  };
}

/** The headers of a caller. */
export function as(principal: string): Partial<Call> {
  return { headers: { authorization: principal } };
}
