import { randomUUID } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import { pino } from "pino";
import { type Call, createCall } from "../../src/namespace/call.ts";
import { toLanceError } from "../../src/namespace/errors.ts";
import { createService, type ServiceOptions } from "../../src/pipeline/service.ts";
import { CallError, collect, createClient, type LanceClient } from "./client.ts";

const log = pino({ level: "silent" });

/** A call as a wire would begin it. */
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
  return { ...call, ...overrides };
}

/** A client that calls the pipeline over a backend directly, without any wire. */
export function createCaller(options: ServiceOptions): LanceClient {
  const service = createService(options);
  return createClient({
    unary: (method, request) => failing(service.unary(method, request, beginCall(method))),
    upload: (method, request, body) => failing(service.upload(method, request, body, beginCall(method))),
    download: (method, request) =>
      failing(collect(method, service.download(method, request, beginCall(method)))),
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
