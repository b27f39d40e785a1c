import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { serveCatalog } from "./catalog.ts";
import { CSV_FILES, JSON_FILES } from "./torture.ts";

describe("an import of a file that tools get wrong", () => {
  const catalog = serveCatalog();
  const { run } = catalog;
  const rowsOf = (table: string, format = "jsonl") => run("export", table, "-", "--format", format);

  let number = 0;
  it.each([...CSV_FILES, ...JSON_FILES].map((file) => [`${file.format}: ${file.name}`, file] as const))(
    "stores every value, or says where it cannot (%s)",
    async (_, { format, content, flags = [], types, rows, refused }) => {
      const table = `t${++number}`;
      const file = join(catalog.root, `${table}.${format}`);
      await writeFile(file, content);
      const imported = run("import", file, table, ...flags);
      if (refused !== undefined) {
        await expect(imported).rejects.toThrow(refused);
        expect((await catalog.ns.listTables({})).tables).not.toContain(table);
        return;
      }
      await imported;
      const { schema } = await catalog.ns.queryTable({ id: [table], filter: "false", k: 1 }).toTable();
      expect(schema.fields.map((field) => String(field.type))).toEqual(types);
      const text = await rowsOf(table);
      expect(text).toBe(`${rows?.join("\n")}\n`);
      // An export of it is imported again as it was.
      for (const other of new Set(["csv", "jsonl", format])) {
        const copy = `${table}-${other}`;
        await catalog.ns.createTable(
          { id: [copy] },
          catalog.ns.queryTable({ id: [table], filter: "false", k: 1 }).bytes(),
        );
        const exported = join(catalog.root, `${copy}.${other}`);
        await run("export", table, exported);
        await run("import", exported, copy, "--mode", "append");
        expect(await rowsOf(copy), other).toBe(text);
      }
    },
  );
});
