import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Origin } from "../../support/results.ts";
import type { Summary } from "../book.ts";
import type { SoakOptions, SoakResult } from "../run.ts";
import type { Sample } from "../samples.ts";
import { drawChart, type Line } from "./chart.ts";
import { escapeHtml } from "./escape-html.ts";

const STYLE = readFileSync(join(import.meta.dirname, "style.css"), "utf8");

/** Returns the report of a soak as a page that refers to nothing outside of it. */
export function pageOf(options: SoakOptions, result: SoakResult, origin: Origin): string {
  const hasPassed = result.criteria.every(({ passed }) => passed);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Soak of Lance Gateway</title>
<style>
${STYLE}</style>
<body>
<main>
<h1>Soak of Lance Gateway: ${hasPassed ? '<span class="passed">passed</span>' : '<span class="failed">failed</span>'}</h1>
<p>${escapeHtml(conditionsOf(options))}</p>
<p class="muted">${escapeHtml(originText(origin))}</p>
${tiles(result)}
<section><h2>Criteria</h2>${criteriaTable(result)}${warningText(result)}</section>
<div class="charts">
${charts(result).join("\n")}
</div>
<div class="tables">
<section><h2>Calls by kind</h2>${summaryTable("Kind", result.kinds)}</section>
<section><h2>Calls by protocol</h2>${summaryTable("Protocol", result.protocols)}</section>
</div>
</main>
</body>
</html>
`;
}

function conditionsOf({
  minutes,
  clients,
  gateways,
  restarts,
  gatewayOptions,
  ...rest
}: SoakOptions): string {
  const root = rest.directory === undefined ? "bucket" : "directory";
  const { rows, isSteady } = rest.size;
  const further =
    gatewayOptions.length === 0 ? "" : ` The gateways have the options ${gatewayOptions.join(" ")}.`;
  return (
    `${clients} clients work for ${minutes} minutes through ${gateways} gateways on one ${root}, behind a balancer of ` +
    `connections. Each keeps its connection, checks each answer, repeats no call and pauses for ${rest.pauseMs} ms on ` +
    `average. The table has ${numberText(rows)} rows at the start and ${isSteady ? "stays about as large" : "grows"}. One call in five writes. Gateways are restarted ${restarts} times, in turn (shaded).${further}`
  );
}

const originText = ({ commit, date, node, cpu, cores }: Origin): string =>
  `${date.slice(0, 16).replace("T", " ")} UTC, commit ${commit}, Node ${node}, ${cores} cores of ${cpu}, with the clients on the same machine.`;

function tiles({ calls, audit, samples }: SoakResult): string {
  const seconds = samples.at(-1)?.seconds ?? Number.NaN;
  const figures: readonly (readonly [string, number])[] = [
    ["Calls", calls.calls],
    ["Calls per second", calls.calls / seconds],
    ["Failed calls", calls.failed],
    ["Wrong answers", calls.wrong],
    ["Lost rows", audit.lost],
    ["Rows at the end", audit.counted],
  ];
  const tile = ([name, value]: readonly [string, number]) =>
    `<div><dt>${name}</dt><dd>${numberText(value)}</dd></div>`;
  return `<dl class="tiles">${figures.map(tile).join("")}</dl>`;
}

function criteriaTable({ criteria }: SoakResult): string {
  const rows = criteria.map(
    ({ name, found, passed }) =>
      `<tr><td>${escapeHtml(name)}</td><td>${escapeHtml(found)}</td><td class="${passed ? "passed" : "failed"}">${passed ? "passed" : "failed"}</td></tr>`,
  );
  return `<table><tr><th>Criterion</th><th>Found</th><th>Verdict</th></tr>${rows.join("")}</table>`;
}

function warningText({ warnings }: SoakResult): string {
  const messages = warnings.map((line) => (JSON.parse(line) as { msg: string }).msg);
  const each = [...new Set(messages)].map(
    (message) => `${messages.filter((other) => other === message).length} × ${message}`,
  );
  return each.length === 0 ? "" : `<p class="muted">Warnings in the logs: ${escapeHtml(each.join(", "))}</p>`;
}

function charts({ samples, restarts }: SoakResult): string[] {
  const draw = (title: string, unit: string, lines: readonly Line[]) =>
    drawChart({ title, unit, lines, seconds: samples.map(({ seconds }) => seconds), spans: restarts });
  const line = (name: string, value: (sample: Sample) => number): Line => ({
    name,
    values: samples.map(value),
  });
  const places = (samples[0]?.residentMib ?? []).map((_, place) => place);
  const byPlace = (field: "residentMib" | "descriptors") =>
    places.map((place) => line(`gateway ${place + 1}`, (sample) => sample[field][place] ?? Number.NaN));
  const byQuantile = (field: "reads" | "writes") =>
    (["p50", "p99"] as const).map((quantile) => line(quantile, (sample) => sample[field][quantile]));
  const drawn = [
    draw("Calls", "per second", [line("calls", ({ callsPerSecond }) => callsPerSecond)]),
    draw("Latency of reads", "milliseconds", byQuantile("reads")),
    draw("Latency of writes", "milliseconds", byQuantile("writes")),
    draw("Resident memory", "MiB", byPlace("residentMib")),
    draw("Descriptors", "open", byPlace("descriptors")),
  ];
  const onDisk = [
    line("files", ({ files }) => files),
    line("manifests among them", ({ manifests }) => manifests),
  ];
  return Number.isNaN(samples[0]?.files) ? drawn : [...drawn, draw("Files on disk", "files", onDisk)];
}

function summaryTable(of: string, summaries: Readonly<Record<string, Summary>>): string {
  const rows = Object.entries(summaries).map(([name, { calls, failed, wrong, p50, p99, most }]) => {
    const cells = [calls, failed, wrong, p50, p99, most].map((value) => `<td>${numberText(value)}</td>`);
    return `<tr><td>${escapeHtml(name)}</td>${cells.join("")}</tr>`;
  });
  const heads = [of, "Calls", "Failed", "Wrong", "p50, ms", "p99, ms", "Maximum, ms"];
  return `<table><tr>${heads.map((head) => `<th>${head}</th>`).join("")}</tr>${rows.join("")}</table>`;
}

function numberText(value: number): string {
  return Number.isFinite(value)
    ? value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })
    : "–";
}
