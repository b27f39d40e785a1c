import type { Schema } from "apache-arrow";
import { type Identifier, LanceError } from "../../client/exports.ts";
import type { Namespace } from "../../client/namespace.ts";
import { type OptionSpec, type OptionTable, UsageError } from "../../config/option-spec.ts";
import { parseChoice } from "../../config/parsers.ts";
import { FILE_FORMATS, type FileFormat, formatOfName, STANDARD } from "../files/formats.ts";
import { openRows } from "../files/read.ts";
import { createProgress, type Progress } from "../progress.ts";
import { catalogCommand } from "./catalog-command.ts";
import { PROPERTY_OPTION } from "./create.ts";
import { parsePath, pathText } from "./operands.ts";

/** Format of rows that no name reveals. */
export const FORMAT_OPTION = {
  flag: "format",
  value: "FORMAT",
  help: "Format of the rows: arrow (an IPC file, or Feather version 2), arrows (an IPC stream), parquet, csv (with names in the first line), tsv (with tabs) or jsonl (an object in each line). Default: by the name of the file.",
  parse: parseChoice(FILE_FORMATS),
} as const satisfies OptionSpec;

const OPTIONS = {
  mode: {
    flag: "mode",
    value: "MODE",
    help: "Action if the table exists: create (fail), append, overwrite or exist-ok (leave it).",
    fallback: "create",
    parse: parseChoice(["create", "append", "overwrite", "exist-ok"]),
  },
  format: FORMAT_OPTION,
  properties: PROPERTY_OPTION,
} as const satisfies OptionTable;

/** `lance-gateway import`: writes the rows of a file, or of standard input, to a table, all or none. */
export const importRows = catalogCommand({
  operands: "<FILE> <TABLE>",
  options: OPTIONS,
  access: "create",
  async run({ namespace, operands: [file = "", path = ""], options, signal, answer }) {
    const id = parsePath(path);
    const { mode } = options;
    if (mode === "append" && options.properties.length > 0)
      throw new UsageError("--property is for a new table, and --mode append adds rows to one that exists");
    const format = options.format ?? formatOfName(file);
    let progress: Progress | undefined;
    const advanced = (amount: number) => progress?.advance(amount);
    const schema = mode === "append" && TEXTS.has(format) ? await schemaOf(namespace, id, signal) : undefined;
    const { bytes, total, unit } = await openRows(file, { format, schema, signal, advanced });
    progress = createProgress({ label: pathText(id), total, unit });
    const properties = Object.fromEntries(options.properties);
    try {
      const { version } =
        mode === "append"
          ? await namespace.insertIntoTable({ id, mode }, bytes, { signal })
          : await namespace.createTable({ id, mode, properties }, bytes, { signal });
      progress.end();
      const source = file === STANDARD ? "standard input" : file;
      await answer(
        { path: pathText(id), version: version ?? null },
        () =>
          `imported ${source} into ${pathText(id)}${version === undefined ? "" : `, version ${version}`}\n`,
      );
    } finally {
      progress.end();
    }
  },
});

/** Formats whose values take their types from the table. */
const TEXTS: ReadonlySet<FileFormat> = new Set(["csv", "tsv", "jsonl"]);

/** Returns the schema of a table; undefined for one that is declared, which gets its columns with the first rows. */
async function schemaOf(
  namespace: Namespace,
  id: Identifier,
  signal: AbortSignal,
): Promise<Schema | undefined> {
  try {
    const rows = await namespace.queryTable({ id, filter: "false", k: 1 }, { signal }).toTable();
    return rows.schema;
  } catch (error) {
    if (!(error instanceof LanceError) || !error.is("TableNotFound")) throw error;
    const { isOnlyDeclared } = await namespace.describeTable({ id, checkDeclared: true }, { signal });
    if (isOnlyDeclared === true) return undefined;
    throw error;
  }
}
