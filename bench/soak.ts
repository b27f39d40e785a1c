// Mixed work with checked answers on all protocols, against gateways on one root behind a balancer, which are restarted
// in turn. Writes a report as a page, and fails where a criterion is not met.
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { PROTOCOLS } from "../test/support/protocols.ts";
import type { BesideFresh } from "./soak/beside-fresh.ts";
import type { Criterion } from "./soak/criteria.ts";
import { pageOf } from "./soak/page/page.ts";
import { openPlace } from "./soak/place.ts";
import { runSoak } from "./soak/run.ts";
import type { Sample } from "./soak/samples.ts";
import { originOf, writeResults } from "./support/results.ts";

const OPTIONS = {
  minutes: { type: "string", default: "10" },
  clients: { type: "string", default: "20" },
  pause: { type: "string", default: "50" },
  rows: { type: "string", default: "10000" },
  steady: { type: "boolean", default: false },
  protocols: { type: "string", default: Object.keys(PROTOCOLS).join() },
  gateways: { type: "string", default: "2" },
  restarts: { type: "string", default: "6" },
  bucket: { type: "boolean", default: false },
  fresh: { type: "boolean", default: false },
  report: { type: "string" },
} as const;

/**
 * Runs the work. Options: --minutes N, --clients N, --pause MS (mean pause of a client between calls), --rows N (in
 * the table at the start), --steady (as many rows are deleted as are added), --protocols NAME,NAME, --gateways N,
 * --restarts N (evenly over the time, in turn), --bucket (on an S3 server instead of a disk), --fresh (compare the table with a fresh one at the end, in turn), --report FILE. Options after `--` go to the gateways.
 */
export async function run(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  const place = await openPlace(values.bucket);
  const freshPlace = values.fresh ? await openPlace(values.bucket) : undefined;
  const options = {
    minutes: Number(values.minutes),
    clients: Number(values.clients),
    pauseMs: Number(values.pause),
    size: { rows: Number(values.rows), isSteady: values.steady },
    protocols: values.protocols.split(","),
    gateways: Number(values.gateways),
    restarts: Number(values.restarts),
    gatewayOptions: [...place.options, ...positionals],
    directory: place.directory,
    freshOptions: freshPlace && [...freshPlace.options, ...positionals],
  };
  try {
    const result = await runSoak(options);
    const file = writeResults("soak", { options: values, gatewayOptions: positionals, ...result });
    const report = values.report ?? file.replace(/json$/, "html");
    await writeFile(report, pageOf({ ...options, gatewayOptions: positionals }, result, originOf()));
    printMinutes(result.wholeMinutes);
    if (result.besideFresh !== undefined) printBesideFresh(result.besideFresh);
    printCriteria(result.criteria);
    console.log(`${result.warnings.length} warnings in the logs`);
    for (const line of result.warnings) console.error(line);
    console.log(`\nThe report is ${report}, the figures are in ${file}`);
    if (result.criteria.some(({ passed }) => !passed)) process.exitCode = 1;
  } finally {
    await Promise.all([place.close(), freshPlace?.close()]);
  }
}

/** Prints the minutes, and how the last one compares with the first. */
function printMinutes(minutes: readonly Sample[]): void {
  const heads = ["minute", "reads", "p50", "p99", "writes", "p50", "p99", "files", "manif.", "MiB"];
  console.log(heads.map((head) => head.padStart(8)).join(""));
  for (const [at, { reads, writes, files, manifests, residentMib }] of minutes.entries()) {
    const cells = [at + 1, reads.calls, reads.p50, reads.p99, writes.calls, writes.p50, writes.p99];
    const line = [...cells, files, manifests, ...residentMib].map((value) => value.toFixed(0).padStart(8));
    console.log(line.join(""));
  }
  const [first, last] = [minutes[0], minutes.at(-1)];
  if (first === undefined || last === undefined) return;
  const [reads, p99] = [last.reads.calls / first.reads.calls, last.reads.p99 / first.reads.p99];
  console.log(`last minute to first: reads ${reads.toFixed(2)}, their p99 ${p99.toFixed(2)}\n`);
  printKinds(first, last);
}

/** Prints the medians of each kind of call in the first and the last minute. */
function printKinds(first: Sample, last: Sample): void {
  console.log(`${"".padEnd(10)}first p50 last p50`);
  for (const [name, { p50 }] of Object.entries(first.kinds)) {
    const medians = [p50, last.kinds[name]?.p50 ?? Number.NaN].map((value) => value.toFixed(1).padStart(9));
    console.log(`${name.padEnd(10)}${medians.join("")}`);
  }
  console.log("");
}

/** Prints how the reads of the table compare with those of a fresh one. */
function printBesideFresh({ old, fresh }: BesideFresh): void {
  for (const [name, { calls, p50, p99 }] of Object.entries({ old, fresh })) {
    console.log(`${name} table: ${calls} reads, p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`);
  }
  const [reads, p99] = [old.calls / fresh.calls, old.p99 / fresh.p99];
  console.log(`old table to fresh one: reads ${reads.toFixed(2)}, their p99 ${p99.toFixed(2)}\n`);
}

function printCriteria(criteria: readonly Criterion[]): void {
  for (const { name, found, passed } of criteria) {
    console.log(`${passed ? "passed" : "FAILED"}  ${name}: ${found}`);
  }
}
