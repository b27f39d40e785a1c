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
import { type Figures, startFigures } from "./support/figures.ts";
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
export async function run(args: readonly string[]): Promise<Figures[]> {
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
    const figures = [
      minutesOf(result.wholeMinutes),
      ...(result.besideFresh === undefined ? [] : [besideFreshOf(result.besideFresh)]),
      criteriaOf(result.criteria),
    ];
    console.log(`${result.warnings.length} warnings in the logs`);
    for (const line of result.warnings) console.error(line);
    console.log(`\nThe report is ${report}, the figures are in ${file}`);
    if (result.criteria.some(({ passed }) => !passed)) process.exitCode = 1;
    return figures;
  } finally {
    await Promise.all([place.close(), freshPlace?.close()]);
  }
}

/** The least of the first minute's reads in a later one, and the most of their p99. */
const [LEAST_READS, MOST_P99] = [0.85, 1.5];

/** The minutes, and how the last one compares with the first. */
function minutesOf(minutes: readonly Sample[]): Figures {
  const figures = startFigures(
    ...["minute", "reads", "p50, ms", "p99", "writes", "p50, ms", "p99", "files", "manifests", "memory, MiB"],
  );
  const [first, last] = [minutes[0], minutes.at(-1)];
  for (const [at, { reads, writes, files, manifests, residentMib }] of minutes.entries()) {
    const goals =
      first === undefined || last === first || at + 1 < minutes.length
        ? []
        : [
            { of: reads.calls / first.reads.calls, least: LEAST_READS, unit: "× the reads" },
            { of: reads.p99 / first.reads.p99, most: MOST_P99, unit: "× the p99" },
          ];
    const times = [reads.calls, reads.p50, reads.p99, writes.calls, writes.p50, writes.p99];
    const memory = residentMib.map((mib) => Math.round(mib)).join(" and ");
    figures.add([String(at + 1), ...times, files, manifests, memory], ...goals);
  }
  return figures;
}

/** How the reads of the table compare with those of a fresh one. */
function besideFreshOf({ old, fresh }: BesideFresh): Figures {
  const figures = startFigures("table", "reads", "p50, ms", "p99, ms");
  figures.add(["old", old.calls, old.p50, old.p99], {
    ...{ of: old.calls / fresh.calls, least: LEAST_READS, unit: "× the reads" },
  });
  figures.add(["fresh", fresh.calls, fresh.p50, fresh.p99]);
  return figures;
}

function criteriaOf(criteria: readonly Criterion[]): Figures {
  const figures = startFigures("criterion", "found", "met");
  for (const { name, found, passed } of criteria) figures.add([name, found, passed ? "yes" : "**no**"]);
  return figures;
}
