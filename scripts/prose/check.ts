import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, matchesGlob } from "node:path";
import { checkFileNames, checkLinks, checkTestColumns } from "./links.ts";
import { type Finding, lintMarkdown } from "./lint.ts";
import { checkRecordLength, checkRecordReferences } from "./records.ts";
import { lintSource } from "./source.ts";

const PAGES = ["*.md", "docs/**/*.md", "examples/**/*.md"];

/** Sources whose comments and test titles follow the rules. */
const SOURCES: readonly string[] = [
  "{bench,scripts}/**/*.{ts,mjs}",
  "src/*.ts",
  "src/{arrow,backends,cli,client,config,dialects,gateway,namespace,observability,pipeline,server,transcode,wires}/**/*.ts",
  "test/{cli,client,clients,contract,dialects,faults,matrix,spec,stores,support}/**/*.ts",
];

/** Files that may refer to decision records. */
const REFERRING: readonly string[] = [
  "{CONTRIBUTING,README,SECURITY}.md",
  "{bench,deploy,docs,examples,proto,scripts,src,test}/**/*.{md,ts,tsx,mjs,js,json,proto,sh,yaml}",
];

/** Checks links, named files, columns of tests and prose of all pages, decision records and references to them, and comments and test titles of the sources. */
export function checkProse(root: string): Finding[] {
  const repository = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  }).split("\n");
  const select = (globs: readonly string[]) =>
    repository.filter((file) => globs.some((glob) => matchesGlob(file, glob)));
  const read = (file: string) => readFileSync(join(root, file), "utf8");
  return [
    ...select(PAGES).flatMap((file) => [
      ...checkLinks(root, file),
      ...checkFileNames(file, read(file), repository),
      ...checkTestColumns(file, read(file)),
      ...checkRecordLength(file, read(file)),
      ...lintMarkdown(file, read(file)),
    ]),
    ...select(REFERRING).flatMap((file) => checkRecordReferences(file, read(file), repository)),
    ...select(SOURCES).flatMap((file) => lintSource(file, read(file))),
  ];
}
