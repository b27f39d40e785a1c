import { expect, test } from "vitest";
import { traceSettings } from "./open-tracing.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

test("tracing is on where a collector or its exporter is named, unless a variable turns it off", () => {
  const cases = [
    [{}, false],
    [ENDPOINT, true],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector:4318/v1/traces" }, true],
    [{ OTEL_TRACES_EXPORTER: "otlp" }, true],
    [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }, false],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: "true" }, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, false],
  ] as const;
  for (const [environment, isOn] of cases)
    expect(traceSettings(environment) !== undefined, JSON.stringify(environment)).toBe(isOn);
});

test("samplers and batches are read from their variables", () => {
  const settings = traceSettings({
    ...ENDPOINT,
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_BSP_SCHEDULE_DELAY: "100",
  });
  expect(settings).toMatchObject({ sampler: "parentbased_traceidratio", share: 0.25 });
  expect(settings?.batch).toMatchObject({ scheduledDelayMillis: 100, maxQueueSize: undefined });
});

test("values that the gateway does not know are errors with the name of their variable", () => {
  for (const [name, value] of [
    ["OTEL_TRACES_EXPORTER", "zipkin"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
    ["OTEL_TRACES_SAMPLER", "sometimes"],
    ["OTEL_TRACES_SAMPLER_ARG", "2"],
    ["OTEL_BSP_MAX_QUEUE_SIZE", "many"],
  ] as const)
    expect(() => traceSettings({ ...ENDPOINT, [name]: value })).toThrow(name);
});
