import { DataType, Precision, type Table, type Vector } from "apache-arrow";
import { runInWorker } from "../shell/worker.ts";
import type { TableContext } from "../table/table-context.ts";
import type { MapNews, MapTask } from "./map-worker.ts";

/** Places of a table from which a sample comes. */
const PLACES = 8;

/** Rows of a sample, and where their vectors are on the map. */
export interface Sample {
  /** Rows from each place, without those whose vector is null or has other than numbers. */
  readonly parts: readonly Table[];
  /** Part and index of each row. */
  readonly rows: readonly (readonly [part: number, index: number])[];
  readonly points: Float32Array;
  readonly shares: readonly [number, number];
  /** Rows of the table. */
  readonly total: number;
  /** Rows of the sample that have no vector. */
  readonly without: number;
}

/** Reads rows from places all over a table, and computes the map of their vectors. */
export async function readSample(
  { connection: { namespace }, id, at }: TableContext,
  column: string,
  limit: number,
  signal: AbortSignal,
): Promise<Sample> {
  const { count } = await namespace.countTableRows({ id, ...at }, { signal });
  const total = Number(count);
  const k = Math.max(1, Math.ceil(limit / PLACES));
  const offsets =
    total <= limit
      ? [0]
      : Array.from({ length: PLACES }, (_, place) => Math.floor((place * (total - k)) / (PLACES - 1)));
  const parts: Table[] = [];
  for (const offset of offsets) {
    const query = { id, ...at, k: total <= limit ? limit : k, offset };
    parts.push(await namespace.queryTable(query, { signal }).toTable());
  }
  const rows: (readonly [number, number])[] = [];
  const numbers: ArrayLike<number>[] = [];
  for (const [part, table] of parts.entries()) {
    const values = table.getChild(column);
    for (let index = 0; index < table.numRows; index++) {
      const vector = values && numbersOf(values, index);
      if (!vector || !Array.from(vector).every(Number.isFinite)) continue;
      rows.push([part, index]);
      numbers.push(vector);
    }
  }
  const read = parts.reduce((sum, { numRows }) => sum + numRows, 0);
  const dimension = numbers[0]?.length ?? 0;
  if (dimension === 0)
    return { parts, rows: [], points: new Float32Array(), shares: [0, 0], total, without: read };
  const vectors = new Float32Array(numbers.length * dimension);
  for (const [row, vector] of numbers.entries()) vectors.set(vector, row * dimension);
  const task: MapTask = { vectors, dimension };
  const { points, shares } = await runInWorker("map.js", task, (news: MapNews) => news.kind === "done", {
    signal,
  });
  return { parts, rows, points, shares, total, without: read - rows.length };
}

/** Returns the numbers of a vector; those of 16 bits are bits in the library. */
function numbersOf(values: Vector, index: number): ArrayLike<number> | undefined {
  const list = values.get(index) as Vector | null;
  if (list === null) return undefined;
  const isHalf = DataType.isFloat(list.type) && list.type.precision === Precision.HALF;
  return isHalf ? Float32Array.from(list as Iterable<number>) : (list.toArray() as ArrayLike<number>);
}
