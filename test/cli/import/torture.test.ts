import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Namespace } from "../../../src/client/index.ts";
import { runCommand } from "../../support/run-command.ts";
import { type DirectoryServer, startDirectoryServer } from "../../support/server.ts";
import { CSV_FILES, JSON_FILES } from "./torture.ts";

describe("an import of a file that tools get wrong", () => {
  let server: DirectoryServer;
  let ns: Namespace;
  let uri: string;
  beforeAll(async () => {
    server = await startDirectoryServer();
    uri = `http://127.0.0.1:${server.port}`;
    ns = await connect("rest", { uri });
  });
  afterAll(async () => {
    await ns.close();
    await server.close();
  });

  const run = (...args: readonly string[]) =>
    runCommand([...args, "--uri", uri], { XDG_CONFIG_HOME: server.root });
  const rowsOf = (table: string, format = "jsonl") => run("export", table, "-", "--format", format);

  let number = 0;
  it.each([...CSV_FILES, ...JSON_FILES].map((file) => [`${file.format}: ${file.name}`, file] as const))(
    "stores every value, or says where it cannot (%s)",
    async (_, { format, content, flags = [], types, rows, refused }) => {
      const table = `t${++number}`;
      const file = join(server.root, `${table}.${format}`);
      await writeFile(file, content);
      const imported = run("import", file, table, ...flags);
      if (refused !== undefined) {
        await expect(imported).rejects.toThrow(refused);
        expect((await ns.listTables({})).tables).not.toContain(table);
        return;
      }
      await imported;
      const { schema } = await ns.queryTable({ id: [table], filter: "false", k: 1 }).toTable();
      expect(schema.fields.map((field) => String(field.type))).toEqual(types);
      const text = await rowsOf(table);
      expect(text).toBe(`${rows?.join("\n")}\n`);
      // An export of it is imported again as it was.
      for (const other of new Set(["csv", "jsonl", format])) {
        const copy = `${table}-${other}`;
        await ns.createTable({ id: [copy] }, ns.queryTable({ id: [table], filter: "false", k: 1 }).bytes());
        const exported = join(server.root, `${copy}.${other}`);
        await run("export", table, exported);
        await run("import", exported, copy, "--mode", "append");
        expect(await rowsOf(copy), other).toBe(text);
      }
    },
  );
});
