import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { parseSync } from "vite";
import { type FolderRule, INTERNALS } from "./rules.ts";

type Rules = Readonly<Record<string, FolderRule>>;

/** Folders that are not checked as sources: generated code. */
const GENERATED = "gen/";

/** Returns a line for each import in a folder of sources that the rules do not allow. Tests and fixtures may import anything. */
export function wrongImportsIn(folder: string, rules: Rules): string[] {
  return globSync("**/*.{ts,tsx}", { cwd: folder })
    .filter((file) => !/(?:\.test|fixture|test-support)\.tsx?$/.test(file) && !file.startsWith(GENERATED))
    .toSorted()
    .flatMap((file) => wrongImports(file, readFileSync(join(folder, file), "utf8"), rules));
}

/**
 * Returns a line for each import of a file that the rules do not allow, imports of types included.
 *
 * @param file path below the folder of the sources
 */
export function wrongImports(file: string, text: string, rules: Rules): string[] {
  const place = placeOf(file, rules);
  if (place === undefined) return [`${file} is in a folder without a rule`];
  const { isForBrowsers = false } = rules[place.folder] as FolderRule;
  const imports = importsOf(file, text).flatMap((name) => {
    if (!name.startsWith(".")) {
      const isOfNode = name.startsWith("node:");
      if (isForBrowsers && isOfNode) return [`${file} runs in browsers and must not import ${name}`];
      return isOfNode || isPublic(name) || isIn(file, INTERNALS) ? [] : [onlyIn(file, name)];
    }
    const target = join(dirname(file), name);
    return mayImport(place, target, rules) ? [] : [`${file} must not import ${target}`];
  });
  if (isIn(file, INTERNALS)) return imports;
  const members = (text.match(PRIVATE_MEMBER) ?? []).map((member) => onlyIn(file, member));
  const places = file === PLACES ? [] : (text.match(OWN_PLACE) ?? []);
  return [
    ...imports,
    ...members,
    ...places.map((place) => `${file} has ${place}; files are found by ${PLACES}`),
  ];
}

/** The file that knows where the files of the package are; the build puts others elsewhere. */
const PLACES = "runtime/package-files.ts";

/** A use of the place of a module, other than to find another package. */
const OWN_PLACE = /(?<!createRequire\()import\.meta\.(?:url|dirname)\b/g;

/** A use of a member whose name says that it is private: `_readableState`, `_handle`. */
const PRIVATE_MEMBER = /(?<=[\w)\]]\??\.)_[a-zA-Z]\w*/g;

const onlyIn = (file: string, what: string) => `${file} reaches into ${what}, which only ${INTERNALS} may`;

/** Whether a module is the entry of its package, one that the package exports, or a style sheet. */
function isPublic(name: string): boolean {
  const [, base, below] = /^((?:@[^/]+\/)?[^/]+)(?:\/(.+))?$/.exec(name) ?? [];
  if (base === undefined || below === undefined || below.endsWith(".css")) return true;
  const { exports = {} } = packageOf(base);
  return Object.hasOwn(exports, `./${below}`);
}

function packageOf(name: string): { readonly exports?: Readonly<Record<string, unknown>> } {
  const file = join(import.meta.dirname, "../../node_modules", name, "package.json");
  return JSON.parse(readFileSync(file, "utf8"));
}

/** The rule that a file is under, and the part of its folder. */
interface Place {
  readonly folder: string;
  /** Place among the parts of the folder; -1 if it is in none of them. */
  readonly part: number;
}

function placeOf(file: string, rules: Rules): Place | undefined {
  const folders = Object.keys(rules).filter((folder) => isIn(file, folder));
  const folder = folders.toSorted((one, other) => other.length - one.length)[0];
  if (folder === undefined) return undefined;
  const parts = rules[folder]?.parts ?? [];
  return { folder, part: parts.findIndex((part) => isIn(file, `${folder}/${part}`)) };
}

function mayImport(from: Place, target: string, rules: Rules): boolean {
  if (isIn(target, "runtime")) return true;
  const to = placeOf(target, rules);
  if (to?.folder === from.folder) return to.part <= from.part;
  return (rules[from.folder] as FolderRule).may.some((entry) => entry === "*" || isIn(target, entry));
}

/** Whether a file is below a folder, is one of the folder's own files (`folder/*`), or is the file itself. */
function isIn(file: string, folder: string): boolean {
  if (folder.endsWith("/*")) return dirname(file) === folder.slice(0, -2);
  return file === folder || file.startsWith(`${folder}/`);
}

/** Returns the names of the modules that a file imports or exports again. */
function importsOf(file: string, text: string): string[] {
  const { module, errors } = parseSync(file, text);
  if (errors[0] !== undefined) throw new Error(`${file} cannot be parsed: ${errors[0].message}`);
  const { staticImports, staticExports, dynamicImports } = module;
  return [
    ...staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports.flatMap(({ entries }) => entries.map(({ moduleRequest }) => moduleRequest?.value)),
    ...dynamicImports.map(
      ({ moduleRequest: { start, end } }) => /^"(.*)"$/.exec(text.slice(start, end))?.[1],
    ),
  ].filter((name) => name !== undefined);
}
