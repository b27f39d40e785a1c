/** A Markdown table with the given heads and rows. */
export function markdownTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  return [markdownRow(heads), markdownRow(heads.map(() => "---")), ...rows.map(markdownRow)].join("\n");
}

/** A row of a Markdown table. */
export function markdownRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
