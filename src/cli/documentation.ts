import { join } from "node:path";

/** The pages that come with the package, beside the sources or the code compiled from them. */
export const DOCUMENTATION = join(import.meta.dirname, "..", "..", "docs", "README.md");
