import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "..", "..", "docs", "changes");

/** Returns the function that shows a change of `docs/changes`, which a test applies. */
export function changeShown(name: string): () => string {
  return () => `\`\`\`\`diff\n${readFileSync(join(folder, `${name}.diff`), "utf8")}\`\`\`\``;
}
