import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { ERROR_TABLE } from "../../src/namespace/errors.ts";
import { UPKEEP_OUTCOMES, UPSTREAM_DECISIONS } from "../../src/namespace/figures.ts";
import { METRICS, type MetricDeclaration } from "../../src/observability/metrics/declarations.ts";
import { createMetrics } from "../../src/observability/metrics/metrics.ts";
import { dashboardQueries } from "../support/dashboard.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const alerts: readonly Alert[] = parse(read("deploy/prometheus/alerts.yaml")).groups.flatMap(
  ({ rules }: { rules: readonly Alert[] }) => rules,
);

/** Labels that Prometheus adds to the series of each target. */
const OF_TARGETS = ["job", "instance", "namespace", "pod"];

/** Values of labels that queries may select. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  code: ["OK", ...ERROR_TABLE.map(({ name }) => name)],
  decision: Object.keys(UPSTREAM_DECISIONS),
  operation: LanceNamespaceService.methods.map(({ name }) => name),
  outcome: [...Object.keys(UPKEEP_OUTCOMES), "accepted", "refused", "delivered"],
};

/** Metrics that a gateway exposes, with their labels. */
async function exposed(): Promise<Map<string, readonly string[]>> {
  const text = String((await createMetrics().page.read()).content);
  const exposed = new Map<string, readonly string[]>([["up", []]]);
  for (const [, name = ""] of text.matchAll(/^# TYPE ((?:process|nodejs)_\w+)/gm)) exposed.set(name, []);
  for (const { name, type, labels } of Object.values<MetricDeclaration>(METRICS)) {
    if (type !== "histogram") exposed.set(name, labels);
    else {
      exposed.set(`${name}_bucket`, [...labels, "le"]);
      exposed.set(`${name}_sum`, labels);
      exposed.set(`${name}_count`, labels);
    }
  }
  return exposed;
}

const METRIC = /\b((?:lance_gateway|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g;
const MATCHER = /(\w+)(?:=~|!~|!=|=)"([^"]*)"/g;
const GROUPING = /\bby \(([^)]*)\)/g;

/** Returns what a query asks that no gateway answers. */
function mistakesIn(expr: string, metrics: ReadonlyMap<string, readonly string[]>): string[] {
  const known = new Set(OF_TARGETS);
  const mistakes: string[] = [];
  for (const [, name = "", matchers = ""] of expr.matchAll(METRIC)) {
    const labels = metrics.get(name);
    if (labels === undefined) mistakes.push(`no metric ${name}`);
    for (const label of labels ?? []) known.add(label);
    for (const [, label = "", value = ""] of matchers.matchAll(MATCHER)) {
      if (![...OF_TARGETS, ...(labels ?? [])].includes(label)) mistakes.push(`no label ${label} of ${name}`);
      const values = VALUES[label];
      const unknown = value.split("|").filter((each) => values !== undefined && !values.includes(each));
      mistakes.push(...unknown.map((each) => `no ${label} ${each}`));
    }
  }
  for (const [, labels = ""] of expr.matchAll(GROUPING)) {
    for (const label of labels.split(", ")) if (!known.has(label)) mistakes.push(`no label ${label}`);
  }
  return mistakes;
}

describe("the dashboard, the alerts and the adapter", () => {
  const adapter = parse(read("deploy/kubernetes/prometheus-adapter.yaml")).rules.custom[0];
  const queries = [
    ...dashboardQueries().map(({ expr }) => expr),
    ...alerts.map(({ expr }) => expr),
    `${adapter.seriesQuery} ${adapter.metricsQuery.replace("<<.LabelMatchers>>", "").replace("<<.GroupBy>>", "pod")}`,
  ];

  test("ask only for metrics and labels that a gateway exposes", async () => {
    const metrics = await exposed();
    expect(queries.length).toBeGreaterThan(60);
    expect(queries.flatMap((expr) => mistakesIn(expr, metrics))).toEqual([]);
  });

  test("are checked so that a misspelt metric, label or value is found", async () => {
    const metrics = await exposed();
    const mistakes = (expr: string) => mistakesIn(expr, metrics);
    expect(mistakes("rate(lance_gateway_call_total[5m])")).toEqual(["no metric lance_gateway_call_total"]);
    expect(mistakes('lance_gateway_jobs{code="OK"}')).toEqual(["no label code of lance_gateway_jobs"]);
    expect(mistakes('lance_gateway_calls_total{code=~"OK|Interna"}')).toEqual(["no code Interna"]);
    expect(mistakes("sum by (le) (lance_gateway_calls_total)")).toEqual(["no label le"]);
  });

  test("show every series of a legend by labels that its query keeps", () => {
    for (const { expr, legendFormat } of dashboardQueries()) {
      const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(", ") ?? OF_TARGETS;
      expect(kept, expr).toEqual(expect.arrayContaining(labels));
    }
  });
});

describe("each alert", () => {
  const names = alerts.map(({ alert }) => alert);

  test("has a section in the runbook, and the runbook has no other", () => {
    const sections = [...read("docs/alerts.md").matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(names);
    for (const { alert, annotations } of alerts)
      expect(annotations["runbook"]).toBe(`docs/alerts.md#${alert.toLowerCase()}`);
  });

  test("has a case in which it fires, and stays quiet on a healthy gateway", () => {
    const { tests } = parse(read("deploy/prometheus/alerts.test.yaml"));
    const cases = tests.flatMap((each: { alert_rule_test: readonly object[] }) => each.alert_rule_test);
    const outcomes = (fires: boolean) =>
      cases
        .filter(({ exp_alerts }: { exp_alerts: readonly object[] }) => exp_alerts.length > 0 === fires)
        .map(({ alertname }: { alertname: string }) => alertname);
    expect(outcomes(true)).toEqual(names);
    expect(outcomes(false)).toEqual(names);
  });
});
