// Fails when a file of src imports what its folder may not import (scripts/imports/rules.ts).
import { join } from "node:path";
import { IMPORT_RULES } from "./imports/rules.ts";
import { wrongImportsIn } from "./imports/wrong-imports.ts";

const wrong = wrongImportsIn(join(import.meta.dirname, "..", "src"), IMPORT_RULES);
for (const line of wrong) console.error(`src/${line}`);
if (wrong.length > 0) {
  console.error("Imports point inward (docs/architecture.md).");
  process.exit(1);
}
console.log("All imports point inward.");
