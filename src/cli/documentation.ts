import { fileURLToPath } from "node:url";
import { packageFile } from "../runtime/package-files.ts";

/** The pages that come with the package, beside the sources or the code compiled from them. */
export const DOCUMENTATION = fileURLToPath(packageFile("docs/README.md"));
