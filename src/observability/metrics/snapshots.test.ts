import assert from "node:assert/strict";
import library from "prom-client";
import { test } from "vitest";
import { createEventTallies } from "./background-tallies.ts";
import { createCrewMetrics } from "./crew-metrics.ts";
import { aggregate, growing, type MetricSnapshot, type Snapshot } from "./snapshots.ts";

const exemplarAt = (timestamp: number) => ({
  labelSet: { trace_id: String(timestamp) },
  value: 1,
  timestamp,
});
const counter = (value: number): MetricSnapshot => ({
  ...{ name: "calls_total", help: "Calls.", type: "counter", aggregator: "sum" },
  values: [{ labels: { code: "OK" }, value }],
});
const histogram = (value: number, timestamp?: number): MetricSnapshot => ({
  ...{ name: "seconds", help: "Seconds.", type: "histogram", aggregator: "sum" },
  values: [
    {
      metricName: "seconds_bucket",
      labels: { le: 1 },
      value,
      exemplar: timestamp === undefined ? null : exemplarAt(timestamp),
    },
  ],
});
const gauge = (value: number): MetricSnapshot => ({
  ...{ name: "running", help: "Running.", type: "gauge", aggregator: "sum" },
  values: [{ labels: {}, value }],
});
const firstOf = (all: readonly MetricSnapshot[], name: string) =>
  all.find((metric) => metric.name === name)?.values[0];

test("snapshots add up, and a bucket keeps the newest exemplar", async () => {
  const all = await aggregate(library, [
    [counter(1), histogram(2, 20)],
    [counter(10), histogram(20, 30)],
    [histogram(200)],
    [histogram(2_000)],
  ]);
  assert.equal(firstOf(all, "calls_total")?.value, 11);
  const bucket = firstOf(all, "seconds");
  assert.deepEqual([bucket?.value, bucket?.exemplar?.timestamp], [2_222, 30]);
});

test("the counts of a worker that has ended stay, its gauges do not, and a silent worker keeps its last values", async () => {
  let answers: readonly MetricSnapshot[] | undefined = [counter(5), gauge(3)];
  const workers = [{ readMetrics: async () => answers }, { readMetrics: async () => [counter(1), gauge(1)] }];
  const serving = [...workers];
  const metrics = createCrewMetrics(() => serving, createEventTallies());
  const read = async () => aggregate(library, (await metrics.gather()).workers);
  assert.equal(firstOf(await read(), "calls_total")?.value, 6);
  answers = undefined;
  assert.equal(firstOf(await read(), "running")?.value, 4);
  const [ended] = serving.splice(0, 1);
  if (ended !== undefined) await metrics.retire(ended);
  const after = await read();
  assert.deepEqual([firstOf(after, "calls_total")?.value, firstOf(after, "running")?.value], [6, 1]);
  assert.deepEqual(
    growing([counter(1), gauge(1), histogram(1)]).map(({ name }) => name),
    ["calls_total", "seconds"],
  );
});

test("no count is missing from a page that is read while workers end, or once several have ended at the same time", async () => {
  const answers = [counter(5), counter(7), counter(1)].map((count) => ({
    metrics: Promise.resolve([count]),
  }));
  const workers = answers.map((answer) => ({
    readMetrics: (): Promise<Snapshot | undefined> => answer.metrics,
  }));
  const serving = [...workers];
  const metrics = createCrewMetrics(() => serving, createEventTallies());
  const read = async () => firstOf(await aggregate(library, (await metrics.gather()).workers), "calls_total");
  assert.equal((await read())?.value, 13);
  const silent = Promise.withResolvers<undefined>();
  for (const worker of workers.slice(0, 2)) worker.readMetrics = () => silent.promise;
  const during = read();
  const retiring = serving.splice(0, 2).map((worker) => metrics.retire(worker));
  silent.resolve(undefined);
  assert.equal((await during)?.value, 13);
  await Promise.all(retiring);
  assert.equal((await read())?.value, 13);
});
