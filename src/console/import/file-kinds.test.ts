import { expect, test } from "vitest";
import { kindOfName, tableNameOf } from "./file-kinds.ts";

test.each([
  ["a.Parquet", "parquet"],
  ["a.b.csv", "csv"],
  ["a.tsv", "tsv"],
  ["a.ndjson", "jsonl"],
  ["a.feather", "arrow"],
  ["a.txt", undefined],
  ["parquet", undefined],
])("the kind of %s is %s", (name, kind) => expect(kindOfName(name)).toBe(kind));

test.each([
  ["people.csv", "people"],
  ["My data (1).parquet", "My_data_1"],
  ["…​.csv", "table"],
])("the file %s becomes the table %s", (file, table) => expect(tableNameOf(file)).toBe(table));
