import { create, type Message } from "@bufbuild/protobuf";
import {
  Health,
  type HealthCheckRequest,
  type HealthCheckResponse,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import { onlyRequest, type Rpc } from "../wires/rpc.ts";
import type { Readiness } from "./app/probes.ts";

/**
 * The rpcs of grpc.health.v1: the state of the whole server, which is named "", and the same state for each service.
 *
 * Watch ends when the client cancels it, and when the server shuts down, because it would delay the drain.
 */
export function healthRpcs(readiness: Readiness, services: readonly string[]): Rpc[] {
  const known = new Set(["", ...services]);
  const answer = (status: Status) => create(HealthCheckResponseSchema, { status });
  const current = () => answer(readiness.ready ? Status.SERVING : Status.NOT_SERVING);

  async function check(request: Message): Promise<HealthCheckResponse> {
    const { service } = request as HealthCheckRequest;
    // The row provides its gRPC code: the protocol requires NOT_FOUND.
    if (!known.has(service)) throw new LanceError("NamespaceNotFound", "the server has no such service");
    return current();
  }

  async function* watch(requests: AsyncIterable<Message>, signal: AbortSignal): AsyncIterable<Message> {
    const { service } = (await onlyRequest(requests)) as HealthCheckRequest;
    const exists = known.has(service);
    if (!exists) yield answer(Status.SERVICE_UNKNOWN);
    for await (const _ of changes(readiness, signal)) if (exists) yield current();
  }

  return [
    { kind: "unary", isProbe: true, method: Health.method.check, handle: check },
    {
      kind: "stream",
      isProbe: true,
      method: Health.method.watch,
      handle: (requests, call) => watch(requests, call.signal),
    },
  ];
}

/** Yields at once and after each change, until the server shuts down or the signal aborts. */
async function* changes(readiness: Readiness, signal: AbortSignal): AsyncIterable<void> {
  let changed = Promise.withResolvers<void>();
  const wake = () => changed.resolve();
  const unsubscribe = readiness.subscribe(wake);
  signal.addEventListener("abort", wake);
  try {
    while (!signal.aborted) {
      yield;
      if (readiness.closed) return;
      await changed.promise;
      changed = Promise.withResolvers();
    }
  } finally {
    unsubscribe();
    signal.removeEventListener("abort", wake);
  }
}
