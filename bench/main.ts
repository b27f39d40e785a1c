// npm run bench -- NAME [options]: runs one comparison and prints its figures. Those of a run with --keep go into docs/performance.md.
import { keepFigures } from "./support/figures.ts";
import { originOf, writeResults } from "./support/results.ts";

/** A benchmark, which returns its `Figures` if it has a place in the documentation. */
interface Benchmark {
  run(args: readonly string[]): Promise<unknown>;
}

const suites: Readonly<Record<string, () => Promise<Benchmark>>> = {
  against: () => import("./against.ts"),
  attacks: () => import("./attacks.ts"),
  bucket: () => import("./bucket.ts"),
  catalog: () => import("./catalog.ts"),
  cluster: () => import("./cluster.ts"),
  cores: () => import("./cores.ts"),
  data: () => import("./data.ts"),
  faults: () => import("./faults.ts"),
  fleet: () => import("./fleet.ts"),
  flight: () => import("./flight.ts"),
  "grpc-clients": () => import("./grpc-clients.ts"),
  loop: () => import("./loop.ts"),
  memory: () => import("./memory.ts"),
  proxy: () => import("./proxy.ts"),
  remote: () => import("./remote.ts"),
  report: () => import("./report.ts"),
  "rows-here": () => import("./rows-here.ts"),
  secured: () => import("./secured.ts"),
  sight: () => import("./sight.ts"),
  soak: () => import("./soak.ts"),
  start: () => import("./start.ts"),
  tpch: () => import("./tpch.ts"),
  upkeep: () => import("./upkeep.ts"),
  wires: () => import("./wires.ts"),
};

const [name = "", ...args] = process.argv.slice(2);
const suite = suites[name];
if (suite === undefined) {
  console.error(`bench: name one of ${Object.keys(suites).join(", ")}`);
  process.exit(2);
}
const origin = originOf();
const isKept = args.includes("--keep");
const own = args.filter((arg) => arg !== "--keep");
const figures = await (await suite()).run(own);
if (Array.isArray(figures)) {
  // The report has started this process and keeps the figures.
  if (process.send !== undefined) process.send(figures);
  else if (isKept) keepFigures(nameOf(own), { origin, command: [name, ...own].join(" "), figures });
  else console.log(`\nThe figures are in ${writeResults(name, { figures })}`);
}

/** The two benchmarks of a bucket have a table each. */
function nameOf(options: readonly string[]): string {
  return options.includes("--cache") ? `${name}-cached` : name;
}
