import { expect, test } from "vitest";
import { activityBetween, parseMetrics, type Reading } from "./rates.ts";

/** A reading with calls by code, and with calls by the upper bounds of their durations. */
function reading(at: number, codes: Record<string, number>, buckets: Record<string, number>): Reading {
  const sample = (name: string, labels: Record<string, string>, value: number) => ({ name, labels, value });
  return {
    at,
    samples: [
      ...Object.entries(codes).map(([code, value]) => sample("lance_gateway_calls_total", { code }, value)),
      ...Object.entries(buckets).map(([le, value]) =>
        sample("lance_gateway_call_seconds_bucket", { le }, value),
      ),
      sample("lance_gateway_calls_running", {}, 3),
    ],
  };
}

test("calls and errors are per second, and a client that leaves makes no error", () => {
  const before = reading(10, { OK: 5, TableNotFound: 1 }, {});
  const after = reading(12, { OK: 25, TableNotFound: 3, Cancelled: 2 }, {});
  expect(activityBetween(before, after)).toMatchObject({
    callsPerSecond: 12,
    errorsPerSecond: 1,
    running: 3,
  });
});

test("durations lie between the bounds of their buckets, and only new calls count", () => {
  const before = reading(0, {}, { "0.1": 100, "1": 100, "+Inf": 100 });
  const after = reading(1, {}, { "0.1": 150, "1": 200, "+Inf": 200 });
  const { median, slowest1Percent } = activityBetween(before, after);
  expect(median).toBeCloseTo(0.1);
  expect(slowest1Percent).toBeCloseTo(0.982);
});

test("without calls there are no durations", () => {
  const { median, slowest1Percent } = activityBetween(reading(0, {}, {}), reading(1, {}, {}));
  expect([median, slowest1Percent]).toEqual([undefined, undefined]);
});

test("a gateway that began anew in between counts as idle", () => {
  const { callsPerSecond } = activityBetween(reading(0, { OK: 100 }, {}), reading(1, { OK: 1 }, {}));
  expect(callsPerSecond).toBe(0);
});

test("lines with and without labels are read, and comments are not", () => {
  const text = [
    "# HELP a_total Something.",
    'a_total{code="OK",database="x \\"y\\" \\\\"} 3',
    "b 0.5 1700000000",
    'c_bucket{le="+Inf"} 7',
    "",
  ].join("\n");
  expect(parseMetrics(text)).toEqual([
    { name: "a_total", labels: { code: "OK", database: 'x "y" \\' }, value: 3 },
    { name: "b", labels: {}, value: 0.5 },
    { name: "c_bucket", labels: { le: "+Inf" }, value: 7 },
  ]);
});
