import { randomUUID } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import { pino } from "pino";
import { type Call, copyCall, createCall } from "../../src/namespace/call/call.ts";
import { toLanceError } from "../../src/namespace/errors.ts";
import type { Service } from "../../src/namespace/service.ts";
import type { Database } from "../../src/pipeline/call/databases.ts";
import { createService, type ServiceOptions } from "../../src/pipeline/create-service.ts";
import { CallError, collect, createClient, type LanceClient } from "./client.ts";

const log = pino({ level: "silent" });

/** Begins a call as a wire would. */
export function beginCall(method: DescMethod, overrides: Partial<Call> = {}): Call {
  const call = createCall({
    method,
    protocol: "grpc",
    requestId: randomUUID(),
    headers: Object.create(null),
    signal: new AbortController().signal,
    deadline: undefined,
    accept: undefined,
    log,
  });
  return copyCall(call, overrides);
}

/** Creates a client that calls the pipeline over a backend directly, without a wire. */
export function createCaller({
  backend,
  limits,
  ...options
}: Database & Omit<ServiceOptions, "databases">): LanceClient {
  const databases = new Map([[undefined, { backend, limits }]]);
  return createServiceCaller(createService({ ...options, databases }));
}

/** Creates a client like {@link createCaller} for any service; every call has the given headers. */
export function createServiceCaller(
  service: Service,
  headers: Readonly<Record<string, string>> = {},
): LanceClient {
  const begin = (method: DescMethod) =>
    beginCall(method, { headers: Object.assign(Object.create(null), headers) });
  return createClient({
    unary: (method, request) => failing(service.unary(method, request, begin(method))),
    upload: (method, request, body) => failing(service.upload(method, request, body, begin(method))),
    download: (method, request) => failing(collect(method, service.download(method, request, begin(method)))),
  });
}

async function failing<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    const { entry, message } = toLanceError(thrown);
    const { code, httpStatus, grpcCode } = entry;
    throw new CallError(message, { code, httpStatus, grpcCode }, { cause: thrown });
  }
}
