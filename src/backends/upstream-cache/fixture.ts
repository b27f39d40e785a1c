import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { createDescribeCache, type DescribeCacheOptions } from "./cache.ts";

export const { method: METHODS } = LanceNamespaceService;

/** Returns a call as the pipeline passes it to a backend. */
export function callOf(method: DescMethod, id: readonly string[], overrides: Partial<Call> = {}): Call {
  return beginCall(method, { id, ...overrides });
}

/** Answers behind a cache. */
export type Behind = (request: Message, call: Call) => Promise<Message>;

/** Creates a cache with a clock of its own in front of a function for all methods. */
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
    /** Calls a method with a single request and a single answer. */
    ask(method: DescMethod, id: readonly string[], overrides: Partial<Call> = {}, init: object = {}) {
      const handler = handlers[method.localName] as Behind;
      return handler(create(method.input, { id: [...id], ...init } as never), callOf(method, id, overrides));
    },
  };
}

/** Returns the headers of a caller. */
export function as(principal: string): Partial<Call> {
  return { headers: { authorization: principal } };
}
