import { Field, FixedSizeList, Float32, Int64, Table, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { createRandom } from "../../test/support/random.ts";

/** A row of the table. Its owner alone changes it, and so knows what every gateway must answer. */
export interface Row {
  readonly id: number;
  /** Number of the client that owns it. */
  readonly owner: number;
  /** Number of its updates. */
  readonly revision: number;
}

/** The table on which all clients work. */
export const TABLE = ["soak"];

const DIMENSIONS = 32;
const WORDS =
  "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north olive pine".split(" ");

/** Returns the text of a row: words that many rows have, the word of {@link wordOf}, and its revision. */
export function textOf(row: Row): string {
  const random = createRandom(row.id * 31 + row.revision);
  return `${random.pick(WORDS)} ${random.pick(WORDS)} ${wordOf(row)} revision${row.revision}`;
}

/** Returns the word that no other row has. */
export const wordOf = ({ id }: Pick<Row, "id">): string => `row${id}`;

/** Returns the vector of a row, which no other row has. */
export function vectorOf({ id }: Pick<Row, "id">): number[] {
  const random = createRandom(id + 1);
  return Array.from({ length: DIMENSIONS }, () => random.below(1000) / 1000);
}

/** Encodes rows as an Arrow IPC stream. */
export function streamOf(rows: readonly Row[]): Uint8Array {
  const vectors = new FixedSizeList(DIMENSIONS, new Field("item", new Float32(), true));
  const integers = (values: readonly number[]) => vectorFromArray(values.map(BigInt), new Int64());
  const columns = {
    id: integers(rows.map(({ id }) => id)),
    owner: integers(rows.map(({ owner }) => owner)),
    text: vectorFromArray(rows.map(textOf), new Utf8()),
    vector: vectorFromArray(rows.map(vectorOf), vectors),
  };
  return tableToIPC(new Table(columns), "stream");
}
