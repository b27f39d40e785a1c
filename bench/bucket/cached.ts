import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { StoreServer } from "../../test/clients/support/store-servers.ts";
import { send } from "../data/client.ts";
import { type ServerProcess, startGateway, startServer } from "../support/process.ts";
import { type Rounds, rangeText, roundsOf, writeResults } from "../support/results.ts";
import { loadOf } from "./load.ts";
import { prepare, rootInBucket, SEARCH_KINDS } from "./searched-table.ts";
import { kindsOf, takeRequests } from "./trace.ts";

/** Number of different searches of a kind; each is warm when it is measured. */
const SEARCHES = 20;

/** Time after a restart from which on the searches must be as fast as before, in milliseconds. */
const SETTLED_MS = 10_000;

/** Names of the servers that are compared, and their options. */
const SIDES: Readonly<Record<string, readonly string[]>> = {
  disk: [],
  bucket: [],
  "bucket, cache": ["--cache-size", "2GiB"],
  "bucket, cache, staleness 60 s": ["--cache-size", "2GiB", "--max-staleness", "60000"],
};

/** Options of {@link runCached}. */
export interface CachedOptions {
  readonly rows: number;
  /** Default: all kinds of searches. */
  readonly kinds?: readonly string[] | undefined;
  readonly delayMs: number;
  readonly rounds: number;
  readonly connections: number;
}

interface CachedMeasured {
  readonly p50Ms: Rounds;
  readonly perSecond: Rounds;
  /** Requests of a warm search to the bucket; empty on a disk. */
  readonly kinds: string;
}

/** The first search after a kill, and the median of those within ten seconds. */
interface Restarted {
  readonly firstMs: number;
  readonly p50Ms: number;
}

interface Side {
  readonly name: string;
  readonly link: ServerProcess | undefined;
  server: ServerProcess;
  start(): Promise<ServerProcess>;
}

type Search = Record<string, unknown>;

/** Measures warm searches on a disk and in a bucket, with and without the cache. */
export async function runCached(store: StoreServer, options: CachedOptions): Promise<void> {
  const { rows, delayMs, kinds = Object.keys(SEARCH_KINDS) } = options;
  const scratch = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const sides: Side[] = [];
  try {
    for (const root of [rootInBucket("cached", store.options), ["--root", join(scratch, "disk")]]) {
      const server = await startGateway(...root, "--table-upkeep=off");
      await prepare(server.port, rows).finally(() => server.stop());
    }
    for (const [name, flags] of Object.entries(SIDES))
      sides.push(await openSide(name, flags, { store, delayMs, scratch }));
    const searches = kinds.map(
      (kind) => [kind, Array.from({ length: SEARCHES }, () => SEARCH_KINDS[kind]?.(rows) ?? {})] as const,
    );
    const results: Record<string, Record<string, CachedMeasured>> = {};
    for (const [kind, each] of searches) results[kind] = await measureKind(kind, each, sides, options);
    const restarts: Record<string, Record<string, Restarted>> = {};
    for (const side of sides) restarts[side.name] = await restart(side, searches);
    console.log(`\nwritten to ${writeResults("bucket-cached", { ...options, results, restarts })}`);
  } finally {
    await Promise.all(sides.flatMap(({ server, link }) => [server.stop(), link?.stop()]));
    await rm(scratch, { recursive: true, force: true });
  }
}

async function openSide(
  name: string,
  flags: readonly string[],
  { store, delayMs, scratch }: { store: StoreServer; delayMs: number; scratch: string },
): Promise<Side> {
  const isDisk = name === "disk";
  const link = isDisk ? undefined : await startServer("bucket/link.ts", String(store.port), String(delayMs));
  const address = { aws_endpoint: `http://127.0.0.1:${link?.port}` };
  const root = isDisk
    ? ["--root", join(scratch, "disk")]
    : rootInBucket("cached", { ...store.options, ...address });
  const cache = flags.length === 0 ? [] : ["--cache-dir", join(scratch, `cache of ${name}`)];
  const start = () => startGateway(...root, ...cache, ...flags, "--table-upkeep=off");
  return { name, link, start, server: await start() };
}

const ask = ({ server }: Side, search: Search | undefined) => send(server.port, "table/t/query", search);

async function measureKind(
  kind: string,
  searches: readonly Search[],
  sides: readonly Side[],
  { rounds, connections }: CachedOptions,
): Promise<Record<string, CachedMeasured>> {
  const times = new Map<Side, number[]>(sides.map((side) => [side, []]));
  const rates = new Map<Side, number[]>(sides.map((side) => [side, []]));
  const kinds = new Map<Side, string>();
  for (const side of sides) {
    for (let pass = 0; pass < 2; pass += 1) for (const search of searches) await ask(side, search);
    if (side.link === undefined) continue;
    await sleep(500);
    await takeRequests(side.link.port);
    await ask(side, searches[0]);
    kinds.set(side, kindsOf(await takeRequests(side.link.port)));
  }
  for (let round = 0; round < rounds; round += 1)
    for (const side of sides) {
      const found: number[] = [];
      for (const search of searches) found.push((await ask(side, search)).ms);
      times.get(side)?.push(roundsOf(found).median);
      let next = 0;
      const load = await loadOf(connections, () => ask(side, searches[next++ % SEARCHES]));
      rates.get(side)?.push(load.perSecond);
    }
  const measured: Record<string, CachedMeasured> = {};
  console.log(`\n${kind}`);
  for (const side of sides) {
    const [p50Ms, perSecond] = [roundsOf(times.get(side) ?? []), roundsOf(rates.get(side) ?? [])];
    measured[side.name] = { p50Ms, perSecond, kinds: kinds.get(side) ?? "" };
    const rate = `${rangeText(perSecond)} /s of ${connections} clients`;
    console.log(`  ${side.name}: p50 ${rangeText(p50Ms)} ms; ${rate}; ${kinds.get(side) || "no requests"}`);
  }
  return measured;
}

/** Kills a server, starts it again, and measures the first search of each kind and those within ten seconds. */
async function restart(
  side: Side,
  searches: readonly (readonly [kind: string, searches: readonly Search[]])[],
): Promise<Record<string, Restarted>> {
  await side.server.stop();
  side.server = await side.start();
  const started = performance.now();
  const firsts = new Map<string, number>();
  for (const [kind, each] of searches) firsts.set(kind, (await ask(side, each[0])).ms);
  const restarted: Record<string, Restarted> = {};
  for (const [kind, each] of searches) {
    const times: number[] = [];
    for (const search of each) times.push((await ask(side, search)).ms);
    restarted[kind] = { firstMs: firsts.get(kind) ?? Number.NaN, p50Ms: roundsOf(times).median };
  }
  const seconds = (performance.now() - started) / 1_000;
  console.log(`\n${side.name}, after a kill (${seconds.toFixed(1)} s)`);
  if (seconds * 1_000 > SETTLED_MS) console.log("  longer than the time within which it has to be warm");
  for (const [kind, { firstMs, p50Ms }] of Object.entries(restarted))
    console.log(`  ${kind}: first ${firstMs.toFixed(1)} ms, p50 ${p50Ms.toFixed(1)} ms`);
  return restarted;
}
