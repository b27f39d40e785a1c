// Writes the list of packages that come with the gateway into the package, as CycloneDX.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const args = ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"];
const text = execFileSync("npm", args, { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 ** 2 });
const bom = JSON.parse(text) as { metadata: { component: { name: string } }; components: readonly unknown[] };
// npm takes the name of the folder.
bom.metadata.component.name = "lance-gateway";
writeFileSync(join(root, "dist", "sbom.cdx.json"), `${JSON.stringify(bom, null, 2)}\n`);
console.log(`The package's dist/sbom.cdx.json lists ${bom.components.length} packages.`);
