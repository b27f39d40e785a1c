import { METRICS, type MetricDeclaration, SECONDS_BOUNDS } from "./declarations.ts";
import type { HistogramSample, Sample, Tallies } from "./tallies.ts";

/** The tallies in the text format of Prometheus, version 0.0.4. */
export function expose(tallies: Tallies): string {
  const lines = [
    ...simple(METRICS.calls, tallies.calls()),
    ...simple(METRICS.refusals, tallies.refusals()),
    ...histogram(METRICS.seconds, tallies.seconds()),
    ...simple(METRICS.running, [{ labels: [], value: tallies.running }]),
    ...simple(METRICS.bytes, tallies.bytes()),
    ...simple(METRICS.decisions, tallies.decisions()),
  ];
  return `${lines.join("\n")}\n`;
}

function* simple(declaration: MetricDeclaration, samples: Iterable<Sample>): Iterable<string> {
  yield* head(declaration);
  for (const { labels, value } of samples) {
    yield `${declaration.name}${inBraces(pairs(declaration, labels))} ${value}`;
  }
}

function* histogram(declaration: MetricDeclaration, samples: Iterable<HistogramSample>): Iterable<string> {
  yield* head(declaration);
  const { name } = declaration;
  for (const { labels, counts, sum } of samples) {
    const common = pairs(declaration, labels);
    let below = 0;
    for (const [index, count] of counts.entries()) {
      below += count;
      yield `${name}_bucket${inBraces([...common, `le="${SECONDS_BOUNDS[index] ?? "+Inf"}"`])} ${below}`;
    }
    yield `${name}_sum${inBraces(common)} ${sum}`;
    yield `${name}_count${inBraces(common)} ${below}`;
  }
}

function head({ name, type, help }: MetricDeclaration): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function pairs({ labels: names }: MetricDeclaration, values: readonly string[]): string[] {
  return names.map((name, index) => `${name}="${escapeValue(values[index] ?? "")}"`);
}

function inBraces(parts: readonly string[]): string {
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

function escapeValue(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
