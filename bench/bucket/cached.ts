import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Field, FixedSizeList, Float32, Int32, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { BUCKET, type StoreServer } from "../../test/clients/support/store-servers.ts";
import { createRandom } from "../../test/support/random.ts";
import { send } from "../data/client.ts";
import { type ServerProcess, startGateway, startServer } from "../support/process.ts";
import { type Rounds, roundsOf, writeResults } from "../support/results.ts";
import { kindsOf, takeRequests } from "./trace.ts";

const DIMENSIONS = 128;
const ROWS_OF_A_WRITE = 10_000;
const WORDS = 2_000;

/** Number of different searches of a kind; each is warm when it is measured. */
const SEARCHES = 20;

/** Names of the servers that are compared, and their options. */
const SIDES: Readonly<Record<string, readonly string[]>> = {
  disk: [],
  bucket: [],
  "bucket, cache": ["--cache-size", "2GiB"],
  "bucket, cache, staleness 60 s": ["--cache-size", "2GiB", "--max-staleness", "60000"],
};

interface CachedMeasured {
  readonly p50Ms: Rounds;
  /** Requests of a warm search to the bucket; empty on a disk. */
  readonly kinds: string;
}

interface Side {
  readonly name: string;
  readonly server: ServerProcess;
  readonly link: ServerProcess | undefined;
}

const random = createRandom(1);
const drawVector = () => Array.from({ length: DIMENSIONS }, () => random.below(1_000) / 1_000);
const drawWord = () => `w${random.below(WORDS)}`;

/** The searches by their names; the numbers say which one of a kind. */
const KINDS: Readonly<Record<string, (rows: number) => Record<string, unknown>>> = {
  vector: () => ({
    k: 10,
    vector: { single_vector: drawVector() },
    columns: { column_names: ["id", "text"] },
  }),
  "full text": () => ({ k: 10, vector: {}, full_text_query: { string_query: { query: drawWord() } } }),
  filter: (rows) => ({ k: 10, vector: {}, filter: `id = ${random.below(rows)}` }),
  "take of 10 rows": (rows) => ({
    ...{ k: 10, vector: {} },
    filter: `id IN (${Array.from({ length: 10 }, () => random.below(rows)).join(", ")})`,
  }),
};

function streamOf(first: number, count: number): Buffer {
  const ids = Array.from({ length: count }, (_, index) => first + index);
  const vector = new FixedSizeList(DIMENSIONS, new Field("item", new Float32(), true));
  const table = new Table({
    id: vectorFromArray(ids, new Int32()),
    text: vectorFromArray(
      ids.map(() => Array.from({ length: 8 }, drawWord).join(" ")),
      new Utf8(),
    ),
    vector: vectorFromArray(ids.map(drawVector), vector),
  });
  return Buffer.from(tableToIPC(table, "stream"));
}

/** Makes the table `t` with its three indices. */
async function prepare(port: number, rows: number): Promise<void> {
  for (let first = 0; first < rows; first += ROWS_OF_A_WRITE)
    await send(port, `table/t/${first === 0 ? "create" : "insert"}`, streamOf(first, ROWS_OF_A_WRITE));
  const indices = [
    { column: "vector", index_type: "IVF_PQ", distance_type: "l2" },
    { column: "text", index_type: "FTS" },
    { column: "id", index_type: "BTREE" },
  ];
  for (const [at, index] of indices.entries()) {
    await send(
      port,
      `table/t/${index.index_type === "IVF_PQ" ? "create_index" : "create_scalar_index"}`,
      index,
    );
    while ((await indexCount(port)) <= at) await sleep(500);
  }
}

async function indexCount(port: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/table/t/index/list`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  return ((await answer.json()) as { indexes?: unknown[] }).indexes?.length ?? 0;
}

/** Measures warm searches on a disk and in a bucket, with and without the cache. */
export async function runCached(
  store: StoreServer,
  rows: number,
  delayMs: number,
  rounds: number,
): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  const root = `s3://${BUCKET}/cached`;
  const flagsOf = (options: Readonly<Record<string, string>>) =>
    Object.entries(options).map(([key, value]) => `--storage-option=${key}=${value}`);
  const sides: Side[] = [];
  try {
    for (const place of [
      ["--root", root, ...flagsOf(store.options)],
      ["--root", join(scratch, "disk")],
    ]) {
      const server = await startGateway(...place, "--table-upkeep=off");
      await prepare(server.port, rows).finally(() => server.stop());
    }
    for (const [name, flags] of Object.entries(SIDES)) {
      if (name === "disk") {
        const server = await startGateway("--root", join(scratch, "disk"), "--table-upkeep=off");
        sides.push({ name, server, link: undefined });
        continue;
      }
      const link = await startServer("bucket/link.ts", String(store.port), String(delayMs));
      const options = { ...store.options, aws_endpoint: `http://127.0.0.1:${link.port}` };
      const cache = flags.length === 0 ? [] : ["--cache-dir", join(scratch, `cache ${sides.length}`)];
      const server = await startGateway(
        "--root",
        root,
        ...flagsOf(options),
        ...cache,
        ...flags,
        "--table-upkeep=off",
      );
      sides.push({ name, server, link });
    }
    const results: Record<string, Record<string, CachedMeasured>> = {};
    for (const [kind, make] of Object.entries(KINDS)) {
      const searches = Array.from({ length: SEARCHES }, () => make(rows));
      results[kind] = await measureKind(kind, searches, sides, rounds);
    }
    console.log(`\nwritten to ${writeResults("bucket-cached", { rows, delayMs, results })}`);
  } finally {
    await Promise.all(sides.flatMap(({ server, link }) => [server.stop(), link?.stop()]));
    await rm(scratch, { recursive: true, force: true });
  }
}

async function measureKind(
  kind: string,
  searches: readonly Record<string, unknown>[],
  sides: readonly Side[],
  rounds: number,
): Promise<Record<string, CachedMeasured>> {
  const times = new Map<string, number[]>(sides.map(({ name }) => [name, []]));
  const kinds = new Map<string, string>();
  for (const { server, link, name } of sides) {
    for (let pass = 0; pass < 2; pass += 1)
      for (const search of searches) await send(server.port, "table/t/query", search);
    if (link === undefined) continue;
    await sleep(500);
    await takeRequests(link.port);
    await send(server.port, "table/t/query", searches[0]);
    kinds.set(name, kindsOf(await takeRequests(link.port)));
  }
  for (let round = 0; round < rounds; round += 1)
    for (const { name, server } of sides) {
      const found: number[] = [];
      for (const search of searches) found.push((await send(server.port, "table/t/query", search)).ms);
      times.get(name)?.push(roundsOf(found).median);
    }
  const measured: Record<string, CachedMeasured> = {};
  console.log(`\n${kind}`);
  for (const { name } of sides) {
    const p50Ms = roundsOf(times.get(name) ?? []);
    measured[name] = { p50Ms, kinds: kinds.get(name) ?? "" };
    const [median, min, max] = [p50Ms.median, p50Ms.min, p50Ms.max].map((value) => value.toFixed(1));
    console.log(`  ${name}: p50 ${median} (${min} to ${max}) ms; ${kinds.get(name) || "no requests"}`);
  }
  return measured;
}
