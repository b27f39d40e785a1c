import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const folder = join(import.meta.dirname, "..", "..", "docs", "adr");

/** The decision records, one line each, by their headings: `# 7. A long upload is written in parts`. */
export function recordList(): string {
  const files = globSync(join(folder, "[0-9]*.md")).sort();
  return files.map((file) => `- [${headingOf(file)}](${basename(file)})`).join("\n");
}

function headingOf(file: string): string {
  const heading = /^# (?<number>\d+)\. (?<title>.+)$/m.exec(readFileSync(file, "utf8"));
  const { number, title } = heading?.groups ?? {};
  if (Number(number) !== Number.parseInt(basename(file), 10))
    throw new Error(`${basename(file)} must begin with the heading "# NUMBER. TITLE"`);
  return `${number}. ${title}`;
}
