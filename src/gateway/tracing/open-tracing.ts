import { AsyncLocalStorage } from "node:async_hooks";
import type { Attributes, SpanKind as OtelKind, Span as OtelSpan, Tracer } from "@opentelemetry/api";
import type { Sampler } from "@opentelemetry/sdk-trace";
import type { Logger } from "pino";
import { loadLibrary } from "../../backends/load-library.ts";
import { type Environment, UsageError } from "../../config/option-spec.ts";
import { parseTraceParent } from "../../namespace/call/headers.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import { packageVersion } from "../../runtime/package-files.ts";
import type { Span, SpanAttributes, SpanInit, SpanKind, Tracing } from "../../runtime/tracing.ts";

/** Tracing that is on. */
export interface OpenTracing {
  readonly tracing: Tracing;
  /** Sends what waits. */
  close(): Promise<void>;
}

const NAME = "lance-gateway";

/** Longest wait for the collector at the end, in milliseconds. */
const LAST_EXPORT_MS = 3_000;

/**
 * Opens the tracing that the standard variables of OpenTelemetry describe; undefined, with nothing loaded, if it is
 * off.
 *
 * @throws UsageError for bad variables, and Error with one line for a missing package.
 */
export async function openTracing(environment: Environment, log: Logger): Promise<OpenTracing | undefined> {
  const settings = traceSettings(environment);
  if (settings === undefined) return undefined;
  const { api, sdk, otlp, resources } = await loadLibraries();
  const own = resources.resourceFromAttributes({ "service.name": NAME, "service.version": packageVersion() });
  const named = resources.detectResources({ detectors: [resources.envDetector] });
  const processor = new sdk.BatchSpanProcessor({
    exporter: new otlp.OTLPTraceExporter(),
    ...given(settings.batch),
  });
  const provider = new sdk.TracerProvider({
    resource: resources.defaultResource().merge(own).merge(named),
    sampler: samplerOf(sdk, settings),
    spanProcessors: [processor],
  });
  api.diag.setLogger(diagnosticsTo(log), api.DiagLogLevel.WARN);
  return {
    tracing: createTracing(api, provider.getTracer(NAME, packageVersion())),
    async close() {
      const shutdown = provider.shutdown().catch((error: unknown) => {
        log.warn({ err: error }, "the last spans cannot be sent");
      });
      const patience = Promise.withResolvers<void>();
      const timer = setTimeout(patience.resolve, LAST_EXPORT_MS);
      await Promise.race([shutdown, patience.promise]);
      clearTimeout(timer);
    },
  };
}

type Sdk = typeof import("@opentelemetry/sdk-trace");

function samplerOf(sdk: Sdk, { sampler, share }: TraceSettings): Sampler {
  const roots = {
    always_on: () => new sdk.AlwaysOnSampler(),
    always_off: () => new sdk.AlwaysOffSampler(),
    traceidratio: () => new sdk.TraceIdRatioBasedSampler(share),
  } as const;
  const root = roots[sampler.replace("parentbased_", "") as keyof typeof roots]();
  return sampler.startsWith("parentbased_") ? new sdk.ParentBasedSampler({ root }) : root;
}

async function loadLibraries() {
  const load = <T>(name: string, library: () => Promise<T>) => loadLibrary("tracing", name, library);
  const [api, sdk, otlp, resources] = await Promise.all([
    load("@opentelemetry/api", () => import("@opentelemetry/api")),
    load("@opentelemetry/sdk-trace", () => import("@opentelemetry/sdk-trace")),
    load(
      "@opentelemetry/exporter-trace-otlp-proto",
      () => import("@opentelemetry/exporter-trace-otlp-proto"),
    ),
    load("@opentelemetry/resources", () => import("@opentelemetry/resources")),
  ]);
  return { api, sdk, otlp, resources };
}

/** Reports the troubles of the library in the log. */
function diagnosticsTo(log: Logger) {
  const warn = (message: string) => log.warn({ source: "opentelemetry" }, message);
  const nothing = () => {};
  return { error: warn, warn, info: nothing, debug: nothing, verbose: nothing };
}

function given<T extends object>(values: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

/** The standard variables of OpenTelemetry about traces, apart from those that its libraries read themselves. */
interface TraceSettings {
  readonly sampler: SamplerName;
  /** Share of traces that begin here and are recorded, from 0 to 1. */
  readonly share: number;
  readonly batch: BatchSettings;
}

/** Sizes and times of a batch of spans; undefined leaves the choice to the library. */
interface BatchSettings {
  readonly scheduledDelayMillis?: number | undefined;
  readonly exportTimeoutMillis?: number | undefined;
  readonly maxQueueSize?: number | undefined;
  readonly maxExportBatchSize?: number | undefined;
}

const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** A sampler that the specification of OpenTelemetry names. */
type SamplerName = (typeof SAMPLERS)[number];

/** Variables that name a collector, and so turn tracing on. */
const ENDPOINTS = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/**
 * Returns the settings of traces; undefined without a collector, or where a variable turns traces off.
 *
 * @throws UsageError for a value that the gateway does not know.
 */
export function traceSettings(environment: Environment): TraceSettings | undefined {
  const read = (name: string) => environment[name] || undefined;
  const exporter = read("OTEL_TRACES_EXPORTER");
  if (read("OTEL_SDK_DISABLED")?.toLowerCase() === "true" || exporter === "none") return undefined;
  if (exporter === undefined && ENDPOINTS.every((name) => read(name) === undefined)) return undefined;
  if (exporter !== undefined && exporter !== "otlp")
    throw new UsageError("OTEL_TRACES_EXPORTER must be otlp or none");
  const protocol = read("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") ?? read("OTEL_EXPORTER_OTLP_PROTOCOL");
  if (protocol !== undefined && protocol !== "http/protobuf")
    throw new UsageError("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, the port of collectors is 4318");
  const sampler = read("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const known = SAMPLERS.find((each) => each === sampler);
  if (known === undefined) throw new UsageError(`OTEL_TRACES_SAMPLER must be one of ${SAMPLERS.join(", ")}`);
  const number = (name: string, max = Number.MAX_SAFE_INTEGER) => numberIn(name, read(name), max);
  return {
    sampler: known,
    share: number("OTEL_TRACES_SAMPLER_ARG", 1) ?? 1,
    batch: {
      scheduledDelayMillis: number("OTEL_BSP_SCHEDULE_DELAY"),
      exportTimeoutMillis: number("OTEL_BSP_EXPORT_TIMEOUT"),
      maxQueueSize: number("OTEL_BSP_MAX_QUEUE_SIZE"),
      maxExportBatchSize: number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
    },
  };
}

function numberIn(name: string, text: string | undefined, max: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (value >= 0 && value <= max) return value;
  throw new UsageError(`${name} must be a number${max === 1 ? " from 0 to 1" : ""}`);
}

/** The library, which is loaded only where tracing is on. */
type TraceApi = typeof import("@opentelemetry/api");

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
