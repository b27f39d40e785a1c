import { Field, FixedSizeList, Float32, Int64, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { send } from "../data/client.ts";

const DIMENSIONS = 32;
const WORDS =
  "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north olive pine".split(" ");

/** The rows of the table at the start. */
export const FIRST_ROWS = 10_000;

/** A call of a client: its kind, whether it writes, and how to make it. */
export interface Work {
  readonly kind: string;
  readonly isWrite: boolean;
  run(port: number, draw: Draw): Promise<unknown>;
}

/** Draws integers from 0 to below a bound. */
export type Draw = (below: number) => number;

/** Creates a source of draws that is the same for the same seed. */
export function createDraw(seed: number): Draw {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Returns rows with the given ids as an Arrow IPC stream. */
export function rowsOf(ids: readonly number[], draw: Draw): Buffer {
  const vector = new FixedSizeList(DIMENSIONS, new Field("item", new Float32(), true));
  const columns = {
    id: vectorFromArray(
      ids.map((id) => BigInt(id)),
      new Int64(),
    ),
    text: vectorFromArray(
      ids.map(() => [1, 2, 3, 4].map(() => wordOf(draw)).join(" ")),
      new Utf8(),
    ),
    vector: vectorFromArray(
      ids.map(() => vectorOf(draw)),
      vector,
    ),
  };
  return Buffer.from(tableToIPC(new Table(columns), "stream"));
}

/** Draws a word of the texts. */
export const wordOf = (draw: Draw) => WORDS[draw(WORDS.length)] ?? "";
/** Draws a vector. */
export const vectorOf = (draw: Draw) => Array.from({ length: DIMENSIONS }, () => draw(1000) / 1000);
/** Queries the table. */
export const query = (port: number, body: Record<string, unknown>) => send(port, "table/soak/query", body);

let nextId = FIRST_ROWS;

/** The kinds of reads. */
export const READS: readonly Work[] = [
  (port: number, draw: Draw) => query(port, { k: 10, vector: { single_vector: vectorOf(draw) } }),
  (port: number, draw: Draw) => query(port, { k: 10, filter: `id = ${draw(FIRST_ROWS)}`, vector: {} }),
  (port: number, draw: Draw) =>
    query(port, {
      k: 10,
      vector: {},
      full_text_query: { string_query: { query: wordOf(draw), columns: ["text"] } },
    }),
].map((run, at) => ({ kind: ["nearest", "filter", "words"][at] as string, isWrite: false, run }));

/** The kinds of writes. */
export const WRITES: readonly Work[] = [
  (port: number, draw: Draw) => send(port, "table/soak/insert", rowsOf([nextId++], draw)),
  (port: number, draw: Draw) => send(port, "table/soak/insert", rowsOf([nextId++, nextId++, nextId++], draw)),
  (port: number, draw: Draw) =>
    send(
      port,
      "table/soak/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true",
      rowsOf([draw(FIRST_ROWS), nextId++], draw),
    ),
  (port: number, draw: Draw) =>
    send(port, "table/soak/update", {
      predicate: `id = ${draw(FIRST_ROWS)}`,
      updates: [["text", `'${wordOf(draw)} ${wordOf(draw)}'`]],
    }),
  (port: number, draw: Draw) => send(port, "table/soak/delete", { predicate: `id = ${draw(FIRST_ROWS)}` }),
].map((run) => ({ kind: "write", isWrite: true, run }));

/** Draws the next call: four reads for a write. */
export function drawWork(draw: Draw): Work {
  const kinds = draw(5) === 0 ? WRITES : READS;
  return kinds[draw(kinds.length)] as Work;
}

/** Creates the table with an index for each kind of read. */
export async function createTable(port: number): Promise<void> {
  const draw = createDraw(7);
  const ids = Array.from({ length: FIRST_ROWS }, (_, id) => id);
  await send(port, "table/soak/create", rowsOf(ids, draw));
  await send(port, "table/soak/create_index", { column: "id", index_type: "BTREE" });
  await send(port, "table/soak/create_index", { column: "text", index_type: "FTS" });
  await send(port, "table/soak/create_index", {
    column: "vector",
    index_type: "IVF_FLAT",
    distance_type: "l2",
  });
}
