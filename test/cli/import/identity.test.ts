import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as arrow from "apache-arrow";
import { describe, expect, it } from "vitest";
import { COLUMNS, tableOf } from "../../support/every-type.ts";
import { serveCatalog } from "./catalog.ts";

describe("an export that is imported again", () => {
  const catalog = serveCatalog();
  const { run } = catalog;
  const read = async (id: string) => {
    const result = catalog.ns.queryTable({ id: [id] });
    const { schema } = await result.toTable();
    return {
      types: schema.fields.map((field) => `${field.name}: ${field.type}`),
      rows: await result.toArray(),
    };
  };

  it.each([
    ["arrow", []],
    ["arrows", []],
    // Parquet has no negative scale.
    ["parquet", ["decimal_of_hundreds"]],
    ["csv", []],
    ["tsv", []],
    ["jsonl", []],
  ] as const)("has the same values of every type in %s", async (format, others) => {
    const names = Object.keys(COLUMNS).filter((name) => !(others as readonly string[]).includes(name));
    const source = `source-${format}`;
    const file = join(catalog.root, `${source}.${format}`);
    await catalog.ns.createTable({ id: [source] }, tableOf(names));
    const before = await read(source);
    expect(before.types).toEqual(names.map((name) => `${name}: ${COLUMNS[name]?.[0]}`));
    await run("export", source, file);
    const copy = `copy-${format}`;
    if (["csv", "tsv", "jsonl"].includes(format)) {
      await catalog.ns.createTable(
        { id: [copy] },
        catalog.ns.queryTable({ id: [source], filter: "false", k: 1 }).bytes(),
      );
      await run("import", file, copy, "--mode", "append");
    } else await run("import", file, copy);
    const after = await read(copy);
    expect(after.types).toEqual(before.types);
    for (const name of names)
      expect(
        after.rows.map((row) => row[name]),
        name,
      ).toEqual(before.rows.map((row) => row[name]));
  });

  it("stores what it was given", async () => {
    const file = join(catalog.root, "given.arrows");
    const names = Object.keys(COLUMNS);
    await writeFile(file, arrow.tableToIPC(tableOf(names), "stream"));
    await run("import", file, "given");
    const [first] = (await run("query", "given", "--format", "jsonl", "--limit", "1")).split("\n");
    expect(first).toBe(
      '{"null":null,"bool":true,"int8":-128,"int16":-32768,"int32":-2147483648,"int64":-9223372036854775808,"uint8":0,"uint16":0,"uint32":0,"uint64":0,' +
        '"float16":0.0999755859375,"float32":0.1,"float64":0.1,"decimal128":1234567890123456789012345678.0123456789,' +
        `"decimal256":${"9".repeat(66)}.0123456789,"decimal_of_hundreds":123400,"text":"","large_text":"","bytes":"","large_bytes":"","fixed_bytes":"AAH/",` +
        '"day":"-5877641-06-23","day_in_millis":"1969-12-31","time_s":"00:00:00","time_ms":"00:00:00","time_us":"00:00:00","time_ns":"00:00:00",' +
        '"at_s":"-292277022657-01-27T08:29:52","at_ms":"-292275055-05-16T16:47:04.192","at_us":"-290308-12-21T19:59:05.224192","at_ns":"1677-09-21T00:12:43.145224192",' +
        '"at_s_utc":"-292277022657-01-27T08:29:52Z","at_us_zone":"-290308-12-21T19:59:05.224192Z","lasts_s":-9223372036854775808,"lasts_ns":-9223372036854775808,' +
        '"list":[18446744073709551615,null],"list_of_times":["1970-01-01T00:00:00.000000001Z",null],"list_of_lists":[["",null],null,[]],' +
        '"vector":[0.1,-0],"vector_of_doubles":[0.1,5e-324],"struct":{"a":"","t":"1970-01-01T00:00:00.000001"},"list_of_structs":[{"a":1.20},null],' +
        '"map":{"a":9223372036854775807},"map_of_numbers":[[1,"1970-01-01T00:00:00.000001"]],"kept_once":"a"}',
    );
  });
});
