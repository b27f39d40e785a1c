import type { OptionSpec, OptionTable } from "../../config/option-spec.ts";
import { parseChoice } from "../../config/parsers.ts";
import { FILE_FORMATS, formatOfName } from "../files/formats.ts";
import { openRows } from "../files/read.ts";
import { createProgress, type Progress } from "../progress.ts";
import { catalogCommand } from "./catalog-command.ts";
import { PROPERTY_OPTION } from "./create.ts";
import { parsePath, pathText } from "./operands.ts";

/** Format of a file whose name does not reveal it. */
export const FORMAT_OPTION = {
  flag: "format",
  value: "FORMAT",
  help: "Format of the file: arrow (an IPC file, or Feather version 2), arrows (an IPC stream) or parquet. Default: by the name of the file.",
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

/** `lance-gateway import`: writes the rows of a file to a table, all or none. */
export const importRows = catalogCommand({
  operands: "<FILE> <TABLE>",
  options: OPTIONS,
  creates: true,
  async run({ namespace, operands: [file = "", path = ""], options, signal, print }) {
    const id = parsePath(path);
    let progress: Progress | undefined;
    const advanced = (amount: number) => progress?.advance(amount);
    const { bytes, total, unit } = await openRows(file, options.format ?? formatOfName(file), advanced);
    progress = createProgress({ label: pathText(id), total, unit });
    const properties = Object.fromEntries(options.properties);
    try {
      const { mode } = options;
      const { version } =
        mode === "append"
          ? await namespace.insertIntoTable({ id, mode }, bytes, { signal })
          : await namespace.createTable({ id, mode, properties }, bytes, { signal });
      progress.end();
      await print(
        options.json
          ? `${JSON.stringify({ path: pathText(id), version: version === undefined ? null : Number(version) })}\n`
          : `imported ${file} into ${pathText(id)}${version === undefined ? "" : `, version ${version}`}\n`,
      );
    } finally {
      progress.end();
    }
  },
});
