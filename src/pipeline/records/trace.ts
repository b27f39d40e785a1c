import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { joinIdentifier } from "../../namespace/identifier.ts";
import type { Span, SpanInit, Tracing } from "../../runtime/tracing.ts";
import { type Databases, databaseOf } from "../call/databases.ts";
import { type Interceptor, isStream } from "../call/interceptor.ts";
import { failureOf } from "./observe.ts";

/** Traces each call as a span that continues the client's trace; what it leads to continues the span. */
export function traceCalls(tracing: Tracing): Interceptor {
  return inSpan(tracing, ({ method, protocol, requestId, peer, headers }) => ({
    name: `${method.parent.typeName}/${method.name}`,
    kind: "server",
    caller: headers,
    attributes: {
      "rpc.system": protocol,
      "rpc.service": method.parent.typeName,
      "rpc.method": method.name,
      "client.address": peer,
      "lance.request_id": requestId,
    },
  }));
}

/** Traces the work of the backend, which begins once the pipeline has admitted a call. */
export function traceBackend(tracing: Tracing, databases: Databases): Interceptor {
  return inSpan(tracing, (call) => ({
    name: "backend",
    kind: "internal",
    attributes: {
      "lance.database": call.database,
      "lance.backend": databaseOf(databases, call).backend.name,
      "lance.object": joinIdentifier(call.id),
    },
  }));
}

function inSpan(tracing: Tracing, describe: (call: Call) => SpanInit): Interceptor {
  return async (call, request, next) => {
    const init = describe(call);
    const span = tracing.start(init);
    // The trace of the call has an id even where the client brings none.
    if (init.kind === "server") call.headers["traceparent"] = span.traceParent;
    try {
      const response = await span.run(() => next(call, request));
      if (isStream(response)) return tracedStream(response, call, span);
      finish(span, call);
      return response;
    } catch (thrown) {
      finish(span, call, thrown);
      throw thrown;
    }
  };
}

async function* tracedStream(
  messages: AsyncIterable<Message>,
  call: Call,
  span: Span,
): AsyncGenerator<never> {
  const iterator = messages[Symbol.asyncIterator]();
  let failure: unknown;
  try {
    for (;;) {
      const { done, value } = await span.run(() => iterator.next());
      if (done) return;
      yield value as never;
    }
  } catch (thrown) {
    failure = thrown;
    throw thrown;
  } finally {
    // A reader that leaves ends the stream.
    await span.run(() => iterator.return?.())?.catch(() => {});
    finish(span, call, failure);
  }
}

function finish(span: Span, call: Call, thrown?: unknown): void {
  const error = thrown === undefined ? undefined : failureOf(call, thrown);
  const { database, principal } = call;
  span.set({ "lance.code": error?.kind ?? "OK", "lance.database": database, "enduser.id": principal?.name });
  span.end(error);
}
