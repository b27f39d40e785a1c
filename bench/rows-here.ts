// Searches of a table that another catalog lists, beside the same searches of its directory: the time of a search alone beside that of a
// description by the catalog, the rate of many connections, and how many descriptions a search costs; and descriptions through the gateway,
// with the rows there and here. The catalog is a gateway behind a link.
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadOf } from "./bucket/load.ts";
import { prepare, SEARCH_KINDS } from "./bucket/searched-table.ts";
import { takeRequests } from "./bucket/trace.ts";
import { send } from "./data/client.ts";
import { computedSeconds } from "./support/cpu.ts";
import { type Figures, type FiguresInProgress, type Goal, startFigures } from "./support/figures.ts";
import { type ServerProcess, startGateway, startServer } from "./support/process.ts";
import { roundsOf, timesOf } from "./support/results.ts";

/** Number of different searches of a kind; each is warm when it is measured. */
const SEARCHES = 20;

/** The gateways in front of the catalog that have the rows, and their options. */
const GATEWAYS: Readonly<Record<string, readonly string[]>> = {
  "rows here": [],
  "rows here, staleness 60 s": ["--max-staleness", "60000"],
};

const USAGE = {
  rows: { type: "string", default: "20000" },
  delay: { type: "string", default: "5" },
  rounds: { type: "string", default: "7" },
  /** Starts of the gateways: two processes of one program differ by up to a tenth as long as they live. */
  starts: { type: "string", default: "1" },
  connections: { type: "string", default: "16" },
  only: { type: "string", default: "vector,filter" },
} as const;

/** The gateway in front of the catalog that forwards all calls. */
const PROXY = "rows upstream";

/** Calls to one server, and their times. */
interface Side {
  readonly name: string;
  /** Returns the process id of the gateway that is compared. */
  pid(): number | undefined;
  /** Makes the call of a number. */
  call(at: number): Promise<{ readonly ms: number }>;
  readonly p50Ms: number[];
  readonly perSecond: number[];
  readonly computedMs: number[];
  calls: number;
  descriptions: number;
}

/**
 * Runs the comparison.
 *
 * Options: `--rows N` of the table, `--delay MS` of each request to the catalog, `--rounds N` of each of the `--starts N` of the gateways,
 * `--connections N`, and `--only KIND,KIND` of the searches, or `describe`.
 */
export async function run(args: readonly string[]): Promise<Figures[]> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const [rows = 0, rounds = 0, starts = 0, connections = 0] = [
    values.rows,
    values.rounds,
    values.starts,
    values.connections,
  ].map(Number);
  const scratch = await realpath(await mkdtemp(join(tmpdir(), "lance-gateway-bench-")));
  const servers: ServerProcess[] = [];
  const start = async (starting: Promise<ServerProcess>) => {
    const server = await starting;
    servers.push(server);
    return server;
  };
  try {
    const catalog = await start(startGateway("--root", scratch, "--table-upkeep=off"));
    await prepare(catalog.port, rows);
    const link = await start(startServer("bucket/link.ts", String(catalog.port), values.delay));
    const uri = ["--uri", `http://127.0.0.1:${link.port}`];
    const here = [...uri, "--rows", "here", "--allowed-location", scratch];
    const gateways: Readonly<Record<string, () => Promise<ServerProcess>>> = {
      [PROXY]: () => startGateway(...uri),
      ...Object.fromEntries(
        Object.entries(GATEWAYS).map(([name, flags]) => [name, () => startGateway(...here, ...flags)]),
      ),
    };
    const running = new Map([["directory", catalog]]);
    const kinds = values.only.split(",").map((kind) => ({ kind, sides: sidesOf(kind, rows, link, running) }));
    for (let round = 0; round < starts; round += 1) {
      for (const [name, begin] of Object.entries(gateways)) running.set(name, await start(begin()));
      for (const { sides } of kinds) await measure(sides, link, { rounds, connections });
      await Promise.all(Object.keys(gateways).map((name) => running.get(name)?.stop()));
    }
    const figures = startFigures(
      ...["call", "side", "p50, ms", `${connections} clients, /s`, "ms of CPU", "×", "descriptions for each"],
    );
    for (const { kind, sides } of kinds) addSides(figures, kind, sides);
    return [figures];
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Returns the sides of a kind of calls, whose gateways are looked up when they are called. */
function sidesOf(
  kind: string,
  rows: number,
  link: ServerProcess,
  running: ReadonlyMap<string, ServerProcess>,
): readonly Side[] {
  const searches = Array.from({ length: SEARCHES }, () => SEARCH_KINDS[kind]?.(rows) ?? {});
  const isDescribe = kind === "describe";
  const times = () => ({ p50Ms: [], perSecond: [], computedMs: [], calls: 0, descriptions: 0 });
  const description: Side = {
    ...{ name: "description", pid: () => undefined, ...times() },
    call: () => send(link.port, "table/t/describe", { vend_credentials: true }),
  };
  const served = [isDescribe ? PROXY : "directory", ...Object.keys(GATEWAYS)].map((name): Side => {
    const port = () => running.get(name)?.port ?? 0;
    return {
      ...{ name, pid: () => running.get(name)?.pid, ...times() },
      call: (at) =>
        isDescribe
          ? send(port(), "table/t/describe", {})
          : send(port(), "table/t/query", searches[at % SEARCHES]),
    };
  });
  return [description, ...served];
}

/** Measures the sides round by round in alternating order, so that noise of the machine affects all of them. */
async function measure(
  sides: readonly Side[],
  link: ServerProcess,
  { rounds, connections }: { readonly rounds: number; readonly connections: number },
): Promise<void> {
  for (const side of sides) for (let at = 0; at < 2 * SEARCHES; at += 1) await side.call(at);
  for (let round = 0; round < rounds; round += 1)
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const times: number[] = [];
      for (let at = 0; at < SEARCHES; at += 1) times.push((await side.call(at)).ms);
      side.p50Ms.push(roundsOf(times).median);
      await takeRequests(link.port);
      let next = 0;
      const pid = side.pid();
      const before = pid === undefined ? 0 : computedSeconds(pid);
      const load = await loadOf(connections, () => side.call(next++));
      if (load.refused > 0) throw new Error(`${side.name}: ${load.refused} calls were refused`);
      side.perSecond.push(load.perSecond);
      if (pid !== undefined) side.computedMs.push(((computedSeconds(pid) - before) * 1_000) / load.calls);
      side.calls += load.calls;
      side.descriptions += (await takeRequests(link.port)).length;
    }
}

function addSides(figures: FiguresInProgress, kind: string, sides: readonly Side[]): void {
  const median = (name: string) => roundsOf(sides.find((side) => side.name === name)?.p50Ms ?? []).median;
  const first = roundsOf(sides.find(({ computedMs }) => computedMs.length > 0)?.computedMs ?? []);
  for (const { name, p50Ms, perSecond, computedMs, calls, descriptions } of sides) {
    const computed = computedMs.length === 0 ? undefined : roundsOf(computedMs);
    const ratio = computed === undefined ? undefined : timesOf(computed, first);
    const goals: Goal[] = [];
    const of = roundsOf(p50Ms).median;
    if (kind === "describe" && ratio !== undefined && name === "rows here")
      goals.push({ of: ratio.median, most: 1.2, unit: "× the CPU" });
    else if (name === "rows here")
      goals.push({ of, most: median("directory") + median("description"), unit: "ms" });
    figures.add(
      [
        kind,
        name,
        roundsOf(p50Ms),
        roundsOf(perSecond),
        computed ?? "",
        ratio ?? "",
        descriptions / Math.max(1, calls),
      ],
      ...goals,
    );
  }
}
