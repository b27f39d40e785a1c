import type { Sampler } from "@opentelemetry/sdk-trace";
import type { Logger } from "pino";
import { loadLibrary } from "../../backends/load-library.ts";
import type { Environment } from "../../config/option-spec.ts";
import type { Tracing } from "../../runtime/tracing.ts";
import { packageVersion } from "../version.ts";
import { type TraceSettings, traceSettings } from "./settings.ts";
import { createTracing } from "./tracer.ts";

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
