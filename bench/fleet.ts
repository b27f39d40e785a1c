// Searches by several gateways over one bucket, each with a cache of its own and a share of a core: the rate of a fixed number of clients, whose
// connections a balancer would divide among the gateways, the time of a search under this load, and its computing in the gateways.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startS3 } from "../test/clients/support/store-servers.ts";
import { loadOf } from "./bucket/load.ts";
import { prepare, rootInBucket, SEARCH_KINDS } from "./bucket/searched-table.ts";
import { takeRequests } from "./bucket/trace.ts";
import { send } from "./data/client.ts";
import { computedSeconds } from "./support/cpu.ts";
import { limitCpu } from "./support/cpu-share.ts";
import { type ServerProcess, startGateway, startServer } from "./support/process.ts";
import { type Rounds, rangeText, roundsOf, writeResults } from "./support/results.ts";

/** Number of different searches of a kind; each is warm when it is measured. */
const SEARCHES = 20;

const USAGE = {
  gateways: { type: "string", default: "1,2,4" },
  share: { type: "string", default: "0.2" },
  rows: { type: "string", default: "30000" },
  delay: { type: "string", default: "20" },
  rounds: { type: "string", default: "5" },
  connections: { type: "string", default: "32" },
  only: { type: "string", default: Object.keys(SEARCH_KINDS).join(",") },
  staleness: { type: "string", default: "0" },
} as const;

/** The figures of a number of gateways. */
interface Measured {
  readonly gateways: number;
  readonly perSecond: Rounds;
  readonly p50Ms: Rounds;
  /** Computing of a search in the gateways, in milliseconds. */
  readonly computedMs: Rounds;
  /** Requests of a search to the bucket. */
  readonly requests: Rounds;
}

type Search = Record<string, unknown>;

/**
 * Runs the comparison.
 *
 * Options: `--gateways N,N`, `--share N` of a core for each gateway, `--rows N` of the table, `--delay MS` of each request to the bucket, `--rounds N`,
 * `--connections N`, `--only KIND,KIND` of the searches, and `--staleness MS`.
 */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: USAGE });
  const counts = values.gateways.split(",").map(Number);
  const [share, rows, rounds, connections] = [
    values.share,
    values.rows,
    values.rounds,
    values.connections,
  ].map(Number) as [number, number, number, number];
  const scratch = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const [gateways, limits]: [ServerProcess[], (() => void)[]] = [[], []];
  const store = await startS3();
  const link = await startServer("bucket/link.ts", String(store.port), values.delay);
  try {
    const maker = await startGateway(...rootInBucket("fleet", store.options), "--table-upkeep=off");
    await prepare(maker.port, rows).finally(() => maker.stop());
    const root = rootInBucket("fleet", { ...store.options, aws_endpoint: `http://127.0.0.1:${link.port}` });
    const own = ["--table-upkeep=off", "--max-staleness", values.staleness, "--cache-size", "2GiB"];
    for (let at = 0; at < Math.max(...counts); at += 1)
      gateways.push(await startGateway(...root, ...own, "--cache-dir", join(scratch, `cache-${at}`)));
    const kinds = values.only
      .split(",")
      .map(
        (kind) => [kind, Array.from({ length: SEARCHES }, () => SEARCH_KINDS[kind]?.(rows) ?? {})] as const,
      );
    for (const [, searches] of kinds)
      for (const { port } of gateways)
        for (let pass = 0; pass < 3; pass += 1)
          await Promise.all(searches.map((search) => send(port, "table/t/query", search)));
    for (const { pid } of gateways) limits.push(limitCpu(pid, share));
    const results: Record<string, readonly Measured[]> = {};
    for (const [kind, searches] of kinds) {
      const fleet = { gateways, link, counts, connections, rounds };
      results[kind] = await measure(fleet, searches);
      print(kind, results[kind]);
    }
    console.log(`\nwritten to ${writeResults("fleet", { ...values, results })}`);
  } finally {
    await Promise.all([...gateways, link].map((server) => server.stop()));
    for (const remove of limits) remove();
    await store.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

interface Fleet {
  readonly gateways: readonly ServerProcess[];
  readonly link: ServerProcess;
  readonly counts: readonly number[];
  readonly connections: number;
  readonly rounds: number;
}

/** Measures each number of gateways, round by round, so that noise of the machine affects all of them. */
async function measure(fleet: Fleet, searches: readonly Search[]): Promise<readonly Measured[]> {
  const runs = fleet.counts.map(() => [] as Awaited<ReturnType<typeof load>>[]);
  for (let round = 0; round < fleet.rounds; round += 1)
    for (const [at, count] of fleet.counts.entries()) runs[at]?.push(await load(fleet, count, searches));
  return runs.map((each, at) => ({
    gateways: fleet.counts[at] ?? 0,
    perSecond: roundsOf(each.map(({ perSecond }) => perSecond)),
    p50Ms: roundsOf(each.map(({ p50Ms }) => p50Ms)),
    computedMs: roundsOf(each.map(({ computedMs }) => computedMs)),
    requests: roundsOf(each.map(({ requests }) => requests)),
  }));
}

async function load({ gateways, link, connections }: Fleet, count: number, searches: readonly Search[]) {
  const used = gateways.slice(0, count);
  const computed = () => used.reduce((sum, { pid }) => sum + computedSeconds(pid), 0);
  const times: number[] = [];
  let next = 0;
  await takeRequests(link.port);
  const before = computed();
  const { calls, refused, perSecond } = await loadOf(connections, async (connection) => {
    const { port } = used[connection % count] as ServerProcess;
    times.push((await send(port, "table/t/query", searches[next++ % searches.length] as Search)).ms);
  });
  if (refused > 0) throw new Error(`${refused} of ${calls} searches were refused`);
  const computedMs = ((computed() - before) * 1_000) / calls;
  const requests = (await takeRequests(link.port)).length / calls;
  return { perSecond, p50Ms: roundsOf(times).median, computedMs, requests };
}

function print(kind: string, measured: readonly Measured[]): void {
  const [first] = measured;
  console.log(`\n${kind}`);
  for (const { gateways, perSecond, p50Ms, computedMs, requests } of measured) {
    const times = (perSecond.median / (first?.perSecond.median ?? Number.NaN)).toFixed(2);
    const costs = `${rangeText(computedMs)} ms of computing and ${rangeText(requests)} requests for each`;
    console.log(
      `  ${gateways}: ${rangeText(perSecond)} /s (${times} ×), p50 ${rangeText(p50Ms)} ms, ${costs}`,
    );
  }
}
