// Writes what a release publishes beside the package of npm and the image, each into a folder, from which the ordinary program
// publishes it. The release workflow runs it, and so does scripts/check-release.sh.
//   node scripts/run.mjs scripts/release.ts version                       prints the version, which all files have to have
//   node scripts/run.mjs scripts/release.ts chart FOLDER IMAGE            IMAGE is the image's name in its registry
//   node scripts/run.mjs scripts/release.ts contract FOLDER MODULE        MODULE is the module's name in a Buf registry
//   node scripts/run.mjs scripts/release.ts python FOLDER PYTHON          PYTHON has grpcio-tools
//   node scripts/run.mjs scripts/release.ts java FOLDER GROUP             GROUP is the group of the Maven artifact
//   node scripts/run.mjs scripts/release.ts notes FOLDER                  the notes of the version, from the changelog
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeJavaProject } from "./release/java.ts";
import { writePythonProject } from "./release/python.ts";
import { releaseNotes, sharedVersion } from "./release/version.ts";

const root = join(import.meta.dirname, "..");

const STEPS: Readonly<Record<string, (folder: string, name: string) => void>> = {
  version: () => console.log(sharedVersion(root)),
  chart: writeChart,
  contract: writeContract,
  python: (folder, python) => writePythonProject(root, folder, sharedVersion(root), python),
  java: (folder, group) => writeJavaProject(root, folder, sharedVersion(root), group),
  notes(folder) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "notes.md"), releaseNotes(root, sharedVersion(root)));
  },
};

/** Copies the chart, whose image is then the published one. */
function writeChart(folder: string, image: string): void {
  cpSync(join(root, "deploy", "helm", "lance-gateway"), folder, { recursive: true, dereference: true });
  rewrite(join(folder, "values.yaml"), /^( {2})repository: lance-gateway$/m, `$1repository: ${image}`);
}

/** Copies the contract as a module of Buf that has a name. */
function writeContract(folder: string, module: string): void {
  cpSync(join(root, "proto"), join(folder, "proto"), { recursive: true });
  cpSync(join(root, "buf.yaml"), join(folder, "buf.yaml"));
  rewrite(join(folder, "buf.yaml"), /^( {2}- path: proto)$/m, `$1\n    name: ${module}`);
}

function rewrite(file: string, pattern: RegExp, text: string): void {
  const before = readFileSync(file, "utf8");
  const after = before.replace(pattern, text);
  if (after === before) throw new Error(`${file} has no line like ${pattern}`);
  writeFileSync(file, after);
}

const [step = "", folder = "", name = ""] = process.argv.slice(2);
const run = STEPS[step];
if (run === undefined) throw new Error(`no step ${step}; there are ${Object.keys(STEPS).join(", ")}`);
run(folder, name);
