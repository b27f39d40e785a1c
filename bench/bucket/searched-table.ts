import { setTimeout as sleep } from "node:timers/promises";
import { Field, FixedSizeList, Float32, Int32, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { BUCKET } from "../../test/clients/support/store-servers.ts";
import { createRandom } from "../../test/support/random.ts";
import { send } from "../data/client.ts";

const DIMENSIONS = 128;
const ROWS_OF_A_WRITE = 10_000;
const WORDS = 2_000;

const random = createRandom(1);
const drawVector = () => Array.from({ length: DIMENSIONS }, () => random.below(1_000) / 1_000);
const drawWord = () => `w${random.below(WORDS)}`;

/** The searches by their names; the numbers say which one of a kind. */
export const SEARCH_KINDS: Readonly<Record<string, (rows: number) => Record<string, unknown>>> = {
  vector: () => ({
    k: 10,
    vector: { single_vector: drawVector() },
    columns: { column_names: ["id", "text"] },
  }),
  "full text": () => ({ k: 10, vector: {}, full_text_query: { string_query: { query: drawWord() } } }),
  hybrid: () => ({
    k: 10,
    vector: { single_vector: drawVector() },
    full_text_query: { string_query: { query: drawWord() } },
    columns: { column_names: ["id", "text"] },
  }),
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

/** Returns the options of a gateway whose catalog is at a path of the bucket. */
export function rootInBucket(path: string, options: Readonly<Record<string, string>>): string[] {
  const flags = Object.entries(options).map(([key, value]) => `--storage-option=${key}=${value}`);
  return ["--root", `s3://${BUCKET}/${path}`, ...flags];
}

/** Makes the table `t` with its three indices. */
export async function prepare(port: number, rows: number): Promise<void> {
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
