import { IMPORT_RULES } from "../imports/rules.ts";
import { markdownTable } from "./markdown.ts";

/** Table of the imports that each folder may have, as in `scripts/imports/rules.ts`. */
export function importTable(): string {
  const rows = Object.entries(IMPORT_RULES).map(([folder, { may, parts = [], isForBrowsers = false }]) => [
    code(folder),
    may.includes("*") ? "anything" : list(may) || "nothing",
    [
      ...(parts.length > 0 ? [`${list(parts)}: each those before it`] : []),
      ...(isForBrowsers ? ["no modules of Node"] : []),
    ].join("; "),
  ]);
  return markdownTable(["Folder", "May import", "Inside of it"], rows);
}

const code = (text: string) => `\`${text}\``;
const list = (names: readonly string[]) => names.map(code).join(", ");
