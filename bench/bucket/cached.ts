import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { StoreServer } from "../../test/clients/support/store-servers.ts";
import { send } from "../data/client.ts";
import { type Figures, type FiguresInProgress, type Goal, startFigures } from "../support/figures.ts";
import { type ServerProcess, startGateway, startServer } from "../support/process.ts";
import { type Rounds, roundsOf } from "../support/results.ts";
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
  /** Time of a request to the bucket alone, which the link and the store make longer than the delay; 0 on a disk. */
  readonly tripMs: Rounds;
}

interface Side {
  readonly name: string;
  readonly link: ServerProcess | undefined;
  server: ServerProcess;
  start(): Promise<ServerProcess>;
}

type Search = Record<string, unknown>;

/** Measures warm searches on a disk and in a bucket, with and without the cache. */
export async function runCached(store: StoreServer, options: CachedOptions): Promise<Figures[]> {
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
    const figures = startFigures(
      ...["search", "side", "p50, ms", `${options.connections} clients, /s`],
      ...["requests of a warm search", "a request alone, ms"],
    );
    for (const [kind, each] of searches) {
      const measured = await measureKind(each, sides, options);
      for (const [side, { p50Ms, perSecond, kinds, tripMs }] of Object.entries(measured))
        figures.add([kind, side, p50Ms, perSecond, kinds, tripMs], ...goalsOf(side, measured));
    }
    const restarts = startFigures(
      "search after a kill",
      "side",
      "the first, ms",
      "p50 within ten seconds, ms",
    );
    for (const side of sides) await restart(restarts, side, searches);
    return [figures, restarts];
  } finally {
    await Promise.all(sides.flatMap(({ server, link }) => [server.stop(), link?.stop()]));
    await rm(scratch, { recursive: true, force: true });
  }
}

/** A warm search takes 1.3 times that on a disk and one round trip, which the staleness spares; many clients have 0.8 of its rate. */
function goalsOf(side: string, measured: Readonly<Record<string, CachedMeasured>>): Goal[] {
  const disk = measured["disk"];
  const found = measured[side];
  if (disk === undefined || found === undefined || !side.includes("cache")) return [];
  const most = 1.3 * disk.p50Ms.median + (side.includes("staleness") ? 0 : found.tripMs.median);
  return [
    { of: found.p50Ms.median, most, unit: "ms" },
    { of: found.perSecond.median, least: 0.8 * disk.perSecond.median, unit: "/s" },
  ];
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

/** Measures a request that the store refuses, and thus answers without work. */
async function tripOf({ link }: Side): Promise<number> {
  const started = performance.now();
  const answer = await fetch(`http://127.0.0.1:${link?.port}/`);
  await answer.arrayBuffer();
  return performance.now() - started;
}

async function measureKind(
  searches: readonly Search[],
  sides: readonly Side[],
  { rounds, connections }: CachedOptions,
): Promise<Record<string, CachedMeasured>> {
  const times = new Map<Side, number[]>(sides.map((side) => [side, []]));
  const rates = new Map<Side, number[]>(sides.map((side) => [side, []]));
  const trips = new Map<Side, number[]>(sides.map((side) => [side, []]));
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
      const alone: number[] = [];
      for (let trip = 0; side.link !== undefined && trip < SEARCHES; trip += 1)
        alone.push(await tripOf(side));
      trips.get(side)?.push(alone.length === 0 ? 0 : roundsOf(alone).median);
      let next = 0;
      const load = await loadOf(connections, () => ask(side, searches[next++ % SEARCHES]));
      rates.get(side)?.push(load.perSecond);
    }
  return Object.fromEntries(
    sides.map((side) => {
      const of = (found: ReadonlyMap<Side, number[]>) => roundsOf(found.get(side) ?? []);
      const facts = { p50Ms: of(times), perSecond: of(rates), tripMs: of(trips) };
      return [side.name, { ...facts, kinds: kinds.get(side) ?? "" }];
    }),
  );
}

/** Kills a server, starts it again, and measures the first search of each kind and those within ten seconds. */
async function restart(
  figures: FiguresInProgress,
  side: Side,
  searches: readonly (readonly [kind: string, searches: readonly Search[]])[],
): Promise<void> {
  await side.server.stop();
  side.server = await side.start();
  const started = performance.now();
  const firsts = new Map<string, number>();
  for (const [kind, each] of searches) firsts.set(kind, (await ask(side, each[0])).ms);
  for (const [kind, each] of searches) {
    const times: number[] = [];
    for (const search of each) times.push((await ask(side, search)).ms);
    figures.add([kind, side.name, firsts.get(kind) ?? Number.NaN, roundsOf(times).median]);
  }
  const taken = performance.now() - started;
  if (taken > SETTLED_MS)
    console.error(`${side.name} took longer than the time within which it has to be warm`);
}
