import { type Environment, UsageError } from "../../config/option-spec.ts";

/** The standard variables of OpenTelemetry about traces, apart from those that its libraries read themselves. */
export interface TraceSettings {
  readonly sampler: SamplerName;
  /** Share of traces that begin here and are recorded, from 0 to 1. */
  readonly share: number;
  readonly batch: BatchSettings;
}

/** Sizes and times of a batch of spans; undefined leaves the choice to the library. */
export interface BatchSettings {
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
export type SamplerName = (typeof SAMPLERS)[number];

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
