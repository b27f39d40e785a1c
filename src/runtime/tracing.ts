/**
 * The port through which code reports what it does in the trace of a call. Tracing belongs to the thread: parts far
 * below the pipeline report without being handed anything, and while it is off they pay for one comparison.
 */

/** Values that a span carries, by name. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Direction of the work: a call that arrives, a call that is made, or neither. */
export type SpanKind = "server" | "client" | "internal";

/** Description of a span at its start. */
export interface SpanInit {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes?: SpanAttributes;
  /** Trace context of the caller, by the names of its headers. Default: the span continues the current one. */
  readonly caller?: Readonly<Record<string, string>>;
}

/** Work in progress. */
export interface Span {
  /** Value of the header `traceparent` for what the span calls. */
  readonly traceParent: string;
  set(attributes: SpanAttributes): void;
  /** Ends the span; with an error that is the server's fault, as a failure. */
  end(error?: unknown): void;
  /** Runs work whose spans are below this one. */
  run<T>(work: () => T): T;
}

/** Starts spans. */
export interface Tracing {
  start(init: SpanInit): Span;
  /** Span in which the running code works. Default: none. */
  readonly current: Span | undefined;
}

let tracing: Tracing | undefined;

/** Turns the tracing of this thread on, or off. */
export function setTracing(to: Tracing | undefined): void {
  tracing = to;
}

/** Runs work in a span below the current one; without one, or without tracing, the work alone. */
export function traced<T>(
  name: string,
  attributes: SpanAttributes,
  work: () => Promise<T>,
  kind: SpanKind = "internal",
): Promise<T> {
  if (tracing?.current === undefined) return work();
  return inSpan(tracing.start({ name, kind, attributes }), work);
}

/**
 * Runs work that goes on after its call, perhaps in another process, in a span of the trace of that call.
 *
 * @param traceParent what {@link currentTraceParent} returned during the call. Default: the span begins a trace
 */
export function tracedLater<T>(
  name: string,
  attributes: SpanAttributes,
  traceParent: string | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (tracing === undefined) return work();
  const caller = { traceparent: traceParent ?? "" };
  return inSpan(tracing.start({ name, kind: "internal", attributes, caller }), work);
}

async function inSpan<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    const result = await span.run(work);
    span.end();
    return result;
  } catch (error) {
    span.end(error);
    throw error;
  }
}

/** Returns the value of `traceparent` for a call that is made now; undefined without tracing. */
export function currentTraceParent(): string | undefined {
  return tracing?.current?.traceParent;
}
