import { AsyncLocalStorage } from "node:async_hooks";
import type { Attributes, SpanKind as OtelKind, Span as OtelSpan, Tracer } from "@opentelemetry/api";
import { parseTraceParent } from "../../namespace/call/headers.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import type { Span, SpanAttributes, SpanInit, SpanKind, Tracing } from "../../runtime/tracing.ts";

/** The library, which is loaded only where tracing is on. */
export type TraceApi = typeof import("@opentelemetry/api");

/** Errors that are the gateway's or its backend's fault; others are answers. */
const FAULTS: ReadonlySet<ErrorName> = new Set([
  "Internal",
  "DataLoss",
  "ServiceUnavailable",
  "OutcomeUnknown",
  "DeadlineExceeded",
]);

/** Creates the tracing of a thread by a tracer of OpenTelemetry. */
export function createTracing(api: TraceApi, tracer: Tracer): Tracing {
  const storage = new AsyncLocalStorage<OpenSpan>();
  const kinds: Readonly<Record<SpanKind, OtelKind>> = {
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    internal: api.SpanKind.INTERNAL,
  };

  class OpenSpan implements Span {
    readonly span: OtelSpan;
    readonly traceParent: string;
    constructor(span: OtelSpan) {
      const { traceId, spanId, traceFlags } = span.spanContext();
      this.span = span;
      this.traceParent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
    }
    set(attributes: SpanAttributes): void {
      this.span.setAttributes(attributes as Attributes);
    }
    end(error?: unknown): void {
      if (error !== undefined) this.#fail(error);
      this.span.end();
    }
    run<T>(work: () => T): T {
      return storage.run(this, work);
    }
    #fail(error: unknown): void {
      const kind = error instanceof LanceError ? error.kind : "Internal";
      this.span.setAttribute("error.type", kind);
      // The text of an error may quote a request, and the log has it.
      if (FAULTS.has(kind)) this.span.setStatus({ code: api.SpanStatusCode.ERROR, message: kind });
    }
  }

  function contextOf({ caller }: SpanInit) {
    const { trace, ROOT_CONTEXT } = api;
    if (caller === undefined) {
      const parent = storage.getStore();
      return parent === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, parent.span);
    }
    const parent = parseTraceParent(caller["traceparent"]);
    if (parent === undefined) return ROOT_CONTEXT;
    const { traceId, spanId, isSampled } = parent;
    const state = caller["tracestate"];
    return trace.setSpanContext(ROOT_CONTEXT, {
      ...{ traceId, spanId, isRemote: true },
      traceFlags: isSampled ? api.TraceFlags.SAMPLED : api.TraceFlags.NONE,
      ...(state !== undefined && { traceState: api.createTraceState(state) }),
    });
  }

  return {
    start(init) {
      const { name, kind, attributes = {} } = init;
      const options = { kind: kinds[kind], attributes: attributes as Attributes };
      return new OpenSpan(tracer.startSpan(name, options, contextOf(init)));
    },
    get current() {
      return storage.getStore();
    },
  };
}
