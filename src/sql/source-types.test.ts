import assert from "node:assert/strict";
import * as arrow from "apache-arrow";
import { afterAll, test } from "vitest";
import { runSql, tablesInMemory } from "../../test/fixtures/sql.ts";
import { COLUMNS, tableOf } from "../../test/support/every-type.ts";
import { textOfJson } from "../arrow/rows/json-text.ts";
import { createTextReader } from "../arrow/rows/row-texts.ts";
import { createSqlEngine } from "./create-engine.ts";

const engine = createSqlEngine();
afterAll(() => engine.close());

/** Columns whose type or values SQL does not have, and what is said about them. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  decimal256: /column "decimal256" of table "t" has the type decimal256\(76, 10\)/,
  decimal_of_hundreds: /has the type decimal128\(10, -2\)/,
  at_s: /infinite timestamp|outside/,
  at_ms: /infinite timestamp/,
  at_us: /infinite timestamp/,
  at_ns: /infinite timestamp/,
  at_s_utc: /a time of the table is outside of the range/,
  at_us_zone: /outside/,
  lasts_s: /a duration of the table is outside of the range/,
  lasts_ns: /a duration of the table is finer/,
  list_of_times: /a time of the table is finer/,
  day: /infinite date/,
};

/** Returns the rows of a table as texts. */
function textsOf(table: arrow.Table): string {
  const read = createTextReader(arrow);
  return table.batches
    .flatMap((batch) => [...read(batch)])
    .map(textOfJson)
    .join("\n");
}

test.each(Object.keys(COLUMNS))(
  "reads a column of type %s as it is stored, or refuses it by name",
  async (name) => {
    const other = name === "int32" ? "uint8" : "int32";
    const t = tableOf([name, other]);
    const run = runSql(engine, `SELECT "${name}" FROM t`, { tables: tablesInMemory({ t }) });
    const refusal = REFUSED[name];
    if (refusal !== undefined) {
      await assert.rejects(run, refusal);
      // Other columns of the table are read.
      const others = await runSql(engine, `SELECT ${other} FROM t`, { tables: tablesInMemory({ t }) });
      assert.equal(others.numRows, t.numRows);
      return;
    }
    const expected = textsOf(t.select([name]));
    // A float of 16 bits becomes one of 32, whose text has fewer digits.
    const found = textsOf(await run);
    assert.equal(
      name === "float16" ? roundedTexts(found) : found,
      name === "float16" ? roundedTexts(expected) : expected,
    );
  },
);

function roundedTexts(texts: string): string {
  return texts.replaceAll(/\d+\.\d+(?:e-\d+)?/g, (digits) => Number(digits).toPrecision(4));
}

test("reads all rows of batches that are longer than a chunk, with nulls, strings and lists in every place", async () => {
  const count = 10_000;
  const id = Array.from({ length: count }, (_, i) => i);
  const texts = Array.from({ length: count }, (_, i) => (i % 7 === 0 ? null : "x".repeat(i % 30)));
  const lists = Array.from({ length: count }, (_, i) =>
    i % 5 === 0 ? null : Array.from({ length: i % 4 }, (_, j) => i + j),
  );
  const t = new arrow.Table({
    id: arrow.vectorFromArray(id, new arrow.Int32()),
    texts: arrow.vectorFromArray(texts, new arrow.Utf8()),
    lists: arrow.vectorFromArray(lists, new arrow.List(new arrow.Field("item", new arrow.Int32()))),
  });
  const result = await runSql(engine, "SELECT * FROM t ORDER BY id", { tables: tablesInMemory({ t }) });
  assert.equal(textsOf(result), textsOf(t));
});
