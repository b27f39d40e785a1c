import { access } from "node:fs/promises";
import type { OptionTable } from "../../config/option-spec.ts";
import { parseSwitch } from "../../config/parsers.ts";
import { formatOfName } from "../files/formats.ts";
import { writeRows } from "../files/write.ts";
import { createProgress } from "../progress.ts";
import { catalogCommand } from "./catalog-command.ts";
import { FORMAT_OPTION } from "./import.ts";
import { parsePath, pathText } from "./operands.ts";
import { ROW_OPTIONS, STATE_OPTIONS } from "./read-options.ts";
import { sizeText } from "./text-table.ts";

const OPTIONS = {
  ...ROW_OPTIONS,
  ...STATE_OPTIONS,
  format: FORMAT_OPTION,
  force: {
    flag: "force",
    help: "Replace an existing file.",
    fallback: "false",
    parse: parseSwitch,
  },
} as const satisfies OptionTable;

/** `lance-gateway export`: writes rows of a table to a file, all or none. */
export const exportRows = catalogCommand({
  operands: "<TABLE> <FILE>",
  options: OPTIONS,
  async run({ namespace, operands: [path = "", file = ""], options, signal, print }) {
    const id = parsePath(path);
    const { filter, columns, version, branch, force } = options;
    const format = options.format ?? formatOfName(file);
    const exists = await access(file).then(
      () => true,
      () => false,
    );
    if (exists && !force) throw new Error(`${file} exists; --force replaces it`);
    const result = namespace.queryTable({ id, filter, columns, version, branch }, { signal });
    const progress = createProgress({ label: pathText(id), total: undefined, unit: "bytes" });
    let written = 0;
    try {
      await writeRows(file, format, result.bytes(), (bytes) => {
        written += bytes;
        progress.advance(bytes);
      });
    } finally {
      progress.end();
    }
    await print(
      options.json
        ? `${JSON.stringify({ path: pathText(id), file, bytes: written })}\n`
        : `exported ${pathText(id)} into ${file}, ${sizeText(written)}\n`,
    );
  },
});
