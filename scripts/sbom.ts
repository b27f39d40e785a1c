// Writes the list of packages that come with the gateway into the package, as CycloneDX.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BUNDLED } from "./bundled.ts";

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; devDependencies?: object }>>;
}

const root = join(import.meta.dirname, "..");
const readJson = (name: string) => JSON.parse(readFileSync(join(root, name), "utf8"));

// `npm sbom --omit dev` also leaves out what both the gateway and its development need, so npm sees no development at all.
const { devDependencies, ...manifest } = readJson("package.json");
// The console contains code of packages that only its build needs.
const bundled = Object.fromEntries(BUNDLED.map((name) => [name, devDependencies[name]]));
Object.assign(manifest.dependencies, bundled);
const lock: Lock = readJson("package-lock.json");
const packages = Object.fromEntries(
  Object.entries(lock.packages).flatMap(([path, { dev, ...entry }]) => {
    const isBundled = BUNDLED.some((name) => `${path}/`.startsWith(`node_modules/${name}/`));
    return dev === true && !isBundled ? [] : [[path, entry]];
  }),
) as Lock["packages"] & { ""?: { devDependencies?: object; dependencies: object } };
delete packages[""]?.devDependencies;
Object.assign(packages[""]?.dependencies ?? {}, bundled);

const folder = mkdtempSync(join(tmpdir(), "lance-gateway-sbom-"));
try {
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify({ ...lock, packages }));
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
  const text = execFileSync("npm", args, { cwd: folder, encoding: "utf8", maxBuffer: 64 * 1024 ** 2 });
  const bom = JSON.parse(text) as { metadata: { component: { name: string } }; components: Named[] };
  // npm takes the name of the folder.
  bom.metadata.component.name = manifest.name;
  checkComplete(bom.components);
  writeFileSync(join(root, "dist", "sbom.cdx.json"), `${JSON.stringify(bom, null, 2)}\n`);
  console.log(`The package's dist/sbom.cdx.json lists ${bom.components.length} packages.`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

interface Named {
  readonly name: string;
}

/** Fails unless each package of the lock is in the list. */
function checkComplete(components: readonly Named[]): void {
  const listed = new Set(components.map(({ name }) => name));
  const names = Object.keys(packages).filter((path) => path !== "");
  const missing = names
    .map((path) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length))
    .filter((name) => !listed.has(name));
  if (missing.length > 0) throw new Error(`the list lacks ${missing.join(", ")}`);
}
