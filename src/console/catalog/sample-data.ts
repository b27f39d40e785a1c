import * as arrow from "apache-arrow";
import type { Connection } from "../session/connection.ts";

const COUNT = 300;
const DIMENSION = 16;
const KINDS = ["shoes", "hat", "coat", "scarf", "bag"] as const;
const COLOURS = ["red", "green", "blue", "black", "white", "yellow"] as const;

/**
 * Creates a table of made-up products: texts, prices, times, lists and vectors, in which products of a kind are near to one another.
 */
export async function createSample({ namespace }: Connection, id: readonly string[]): Promise<void> {
  await namespace.createTable({ id }, sampleRows());
}

/** Returns the rows, which are the same each time. */
function sampleRows(): arrow.Table {
  const ids = Array.from({ length: COUNT }, (_, at) => at);
  const of = <T extends arrow.DataType>(type: T, value: (at: number) => unknown) =>
    arrow.vectorFromArray(ids.map(value), type);
  const list = (item: arrow.DataType) => new arrow.List(new arrow.Field("item", item, true));
  const vector = new arrow.FixedSizeList(DIMENSION, new arrow.Field("item", new arrow.Float32(), true));
  const [kindOf, colourOf] = [(at: number) => at % KINDS.length, (at: number) => (at * 7) % COLOURS.length];
  return new arrow.Table({
    id: of(new arrow.Int64(), (at) => BigInt(at)),
    name: of(new arrow.Utf8(), (at) => `${COLOURS[colourOf(at)]} ${KINDS[kindOf(at)]} ${at}`),
    kind: of(new arrow.Utf8(), (at) => KINDS[kindOf(at)]),
    price: of(new arrow.Float64(), (at) => (500 + ((at * 379) % 9_500)) / 100),
    in_stock: of(new arrow.Bool(), (at) => at % 4 !== 0),
    added: of(new arrow.TimestampMicrosecond("UTC"), (at) => Date.UTC(2026, 0, 1) + at * 7_200_000),
    tags: of(list(new arrow.Utf8()), (at) => [COLOURS[colourOf(at)], at % 3 === 0 ? "sale" : "new"]),
    vector: of(vector, (at) =>
      Array.from(
        { length: DIMENSION },
        (_, place) => Math.sin((kindOf(at) + 1) * (place + 1)) + 0.25 * Math.sin(at * (place + 1) * 1.7),
      ),
    ),
  });
}
