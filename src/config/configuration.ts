import { hasDotSegment } from "../namespace/operations/template.ts";
import type { Route } from "../pipeline/call/route.ts";
import { isJsonObject } from "../runtime/text.ts";
import {
  checkKeys,
  expandVariables,
  listedSections,
  readConfigFile,
  type Section,
  subsection,
  textAt,
} from "./config-file.ts";
import { attempt, findGiven, type Layer, type Report, refuse, withFiles } from "./layers.ts";
import {
  type BackendKind,
  backendKindOf,
  type Environment,
  fileKey,
  type OptionSpec,
  UsageError,
} from "./option-spec.ts";
import { withDriverAddress } from "./options/driver-address.ts";
import { SERVE_OPTIONS, type ServeOptions } from "./options/groups.ts";
import { backendIn, PLACES, readServeOptions, refuseUnservedKinds } from "./serve-options.ts";

/** Parsed configuration of `lance-gateway serve`. */
export interface Configuration {
  readonly options: ServeOptions;
  /** Default: the single unnamed database that the options describe. */
  readonly databases?: Databases | undefined;
  /** Digests of the files that are read when their options take effect, by their paths. Default: nobody compares them. */
  readonly contents?: ReadonlyMap<string, string> | undefined;
}

/** Several databases behind a single endpoint. */
export interface Databases {
  /** Options of each database, by its name. */
  readonly byName: ReadonlyMap<string, ServeOptions>;
  readonly routes: readonly Route[];
  /** Prefix of a database's name in a path; undefined if paths do not name databases. */
  readonly pathPrefix: string | undefined;
  /** Database of calls that do not name one. Default: these calls are refused. */
  readonly fallback: string | undefined;
}

const SPECS: readonly OptionSpec[] = Object.values(SERVE_OPTIONS);
/** Keys of the file that do not belong to a flag. */
const FILE_KEYS = ["databases", "routes", "default-database"] as const;
const NAME = /^[A-Za-z0-9_.-]+(?:\/[A-Za-z0-9_.-]+)*$/;

/** Sources of the options of `serve` and its databases, in order of precedence. */
export interface Sources {
  readonly layers: readonly Layer[];
  /** The configuration file. Default: there is none. */
  readonly file?: Section | undefined;
  /** Sources of the options of each database. Default: there is a single database. */
  readonly databases?: ReadonlyMap<string, readonly Layer[]> | undefined;
}

/**
 * Reads the configuration file below the given layers, which override it.
 *
 * @param given the command line and the environment variables, in order of precedence.
 * @param environment the variables that the file may refer to.
 * @param report Default: the first mistake ends the reading.
 * @throws UsageError with a single line that names the file and the path of the key.
 */
export async function readSources(
  given: readonly Layer[],
  environment: Environment,
  report: Report = refuse,
): Promise<Sources> {
  const path = findGiven(SERVE_OPTIONS.config, given)?.texts.at(-1);
  if (path === undefined) return { layers: await withFiles(SERVE_OPTIONS, given) };
  const file = await readConfigFile(path, report);
  const keys = SPECS.filter((spec) => spec !== SERVE_OPTIONS.config).map(fileKey);
  checkKeys(file, [...keys, ...FILE_KEYS], report);
  const layers = await withFiles(SERVE_OPTIONS, [...given, sectionLayer(file, environment)]);
  const all = attempt(report, () => subsection(file, "databases"));
  if (all === undefined) return { layers, file };
  for (const spec of SPECS) attempt(report, () => refusePlace(spec, layers));
  const inherited = layers.map(withoutPlaces);
  const databases = new Map<string, readonly Layer[]>();
  for (const name of Object.keys(all.entries)) {
    const own = attempt(report, () => databaseLayer(all, name, environment, report));
    const read = await withFiles(SERVE_OPTIONS, own === undefined ? [] : [own]);
    databases.set(name, [...read, ...inherited]);
  }
  return { layers, file, databases };
}

/**
 * Reads the options of `serve` and the databases.
 *
 * @param report Default: the first mistake ends the reading.
 * @throws UsageError with a single line that names the flag, the variable, or the file and the path of the key.
 */
export function configurationOf(
  { layers, file, databases }: Sources,
  report: Report = refuse,
): Configuration {
  const options = readServeOptions(layers, report, databases !== undefined);
  if (file === undefined) return { options };
  const found = attempt(report, () => databasesOf(file, databases, options, report));
  if (found !== undefined) {
    const kinds = [...found.byName.values()].map(({ backend }) => backendKindOf(backend));
    attempt(report, () => refuseUnservedKinds(layers, kinds));
  }
  return { options, databases: found };
}

/** Reads sources, and from them the options of `serve` and the databases. The given layers override the configuration file. */
export async function readConfiguration(
  given: readonly Layer[],
  environment: Environment,
): Promise<Configuration> {
  return configurationOf(await readSources(given, environment));
}

function databasesOf(
  file: Section,
  sources: Sources["databases"],
  { rayGatewayUrl: common }: ServeOptions,
  report: Report,
): Databases | undefined {
  if (sources === undefined) {
    for (const key of ["routes", "default-database"]) {
      if (key in file.entries) throw new UsageError(`${file.at}${key} requires databases`);
    }
    return undefined;
  }
  const names = [...sources.keys()];
  if (names.length === 0) throw new UsageError(`${file.at}databases must name at least one database`);
  const byName = new Map(
    [...sources].map(([name, layers]) => [name, readServeOptions(layers, report, true)]),
  );
  const fallback = textAt(file, "default-database");
  if (fallback !== undefined && !byName.has(fallback)) {
    throw new UsageError(`${file.at}default-database must be one of ${names.join(", ")}, not "${fallback}"`);
  }
  const { routes, pathPrefix } = readRoutes(file, listedSections(file, "routes"), names);
  if (fallback !== undefined && routes.some(({ by }) => by === "namespace")) {
    throw new UsageError(
      `${file.at}default-database has no use beside a route by namespace, whose root lists the databases`,
    );
  }
  for (const [database, own] of byName) {
    const route = { database, pathPrefix, isFallback: database === fallback, common };
    byName.set(database, attempt(report, () => withDriverAddress(own, route, file.at)) ?? own);
  }
  return { byName, routes, pathPrefix, fallback };
}

/** Returns the source of the options that a database has for itself. */
function databaseLayer(all: Section, name: string, environment: Environment, report: Report): Layer {
  if (!NAME.test(name) || hasDotSegment(name)) {
    throw new UsageError(
      `${all.at}${name} must be a name of letters, digits, "_", "-", "." and "/", and no part of dots alone`,
    );
  }
  const section = subsection(all, name) ?? { entries: {}, at: `${all.at}${name}.` };
  const own = sectionLayer(section, environment);
  const kind = backendKindOf(backendIn(own) ?? "dir");
  checkDatabaseKeys(section, kind, report);
  const place = PLACES[kind];
  if (place !== undefined && own(place) === undefined)
    report(new UsageError(`${section.at}${place.flag} is missing`));
  return own;
}

/** Refuses unknown keys, and those of options that a database cannot set. Reading the options refuses those of other backends. */
function checkDatabaseKeys(section: Section, kind: BackendKind, report: Report): void {
  const { at, entries } = section;
  const specOf = (key: string) =>
    SPECS.find((spec) => spec !== SERVE_OPTIONS.config && fileKey(spec) === key);
  for (const key in entries) {
    const spec = specOf(key);
    if (spec !== undefined && spec.backends === undefined)
      report(new UsageError(`${at}${key} applies to the whole server; it belongs at the top of the file`));
  }
  const unknown = Object.entries(entries).filter(([key]) => specOf(key) === undefined);
  const allowed = SPECS.filter(({ backends }) => backends?.includes(kind)).map(fileKey);
  checkKeys({ at, entries: Object.fromEntries(unknown) }, allowed, report);
}

/** Each database configures its own data, so options that name data are refused at the top. */
function refusePlace(spec: OptionSpec, layers: readonly Layer[]): void {
  const given = spec.place && findGiven(spec, layers);
  if (given)
    throw new UsageError(`${given.source} has no meaning beside databases, each of which says its own`);
}

/** Returns a source without the options that name the place of the data. */
export function withoutPlaces(layer: Layer): Layer {
  return (spec) => (spec.place ? undefined : layer(spec));
}

/** Creates a source of options from a map of the file. */
function sectionLayer({ entries, at }: Section, environment: Environment): Layer {
  return (spec) => {
    const key = fileKey(spec);
    const value = entries[key];
    if (value === undefined || value === null) return undefined;
    const source = `${at}${key}`;
    const shown = textsOf(spec, value, source);
    return { source, shown, texts: shown.map((text) => expandVariables(text, environment, source)) };
  };
}

function textsOf({ repeatable, maps }: OptionSpec, value: unknown, source: string): readonly string[] {
  if (!repeatable) return [scalarText(value, source)];
  if (maps)
    return [value]
      .flat()
      .map((each) => (isJsonObject(each) ? JSON.stringify(each) : scalarText(each, source)));
  if (isJsonObject(value))
    return Object.entries(value).map(([name, each]) => `${name}=${scalarText(each, source)}`);
  return [value].flat().map((each) => scalarText(each, source));
}

function scalarText(value: unknown, source: string): string {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return String(value);
  throw new UsageError(`${source} must be a single value, not ${Array.isArray(value) ? "a list" : "a map"}`);
}

/** Routes of the configuration file, and the prefix of a database's name in a path. */
interface Routes {
  readonly routes: readonly Route[];
  readonly pathPrefix: string | undefined;
}

/** Default routes. */
const USUAL: Routes = { routes: [{ by: "header" }, { by: "path" }], pathPrefix: "/db" };

const PREFIX = /^(?:\/[A-Za-z0-9_.~-]+)+$/;
/** Paths of the probes and the protocols. */
const TAKEN = /^\/(?:v1|healthz|readyz|(?:lance|grpc)\..*)(?:\/|$)/;
const HOST = /^(?:\*\.)?[a-z0-9.-]+$/;

type Kind = Route["by"];

const READERS: Readonly<Record<Kind, (section: Section, databases: readonly string[]) => Route>> = {
  header: (section) => plain(section, "header"),
  namespace: (section) => plain(section, "namespace"),
  path: (section) => plain(section, "path", "prefix"),
  host(section, databases) {
    checkKeys(section, ["by", "hosts"]);
    const hosts = subsection(section, "hosts");
    if (hosts === undefined) throw new UsageError(`${section.at}hosts is missing`);
    for (const host in hosts.entries) {
      if (!HOST.test(host)) {
        throw new UsageError(`${hosts.at}${host} must be a host in lower case, or such as *.example.com`);
      }
      const name = textAt(hosts, host);
      if (name === undefined || !databases.includes(name)) {
        throw new UsageError(`${hosts.at}${host} must be one of ${databases.join(", ")}`);
      }
    }
    return { by: "host", hosts: hosts.entries as Readonly<Record<string, string>> };
  },
};

/**
 * Reads the routes of a configuration file. Default: by header and by path.
 *
 * @throws UsageError
 */
function readRoutes(file: Section, sections: readonly Section[], databases: readonly string[]): Routes {
  if (sections.length === 0) return USUAL;
  const routes = sections.map((section) => {
    const by = textAt(section, "by");
    if (by === undefined || !Object.hasOwn(READERS, by)) {
      throw new UsageError(`${section.at}by must be one of ${Object.keys(READERS).sort().join(", ")}`);
    }
    return READERS[by as Kind](section, databases);
  });
  const kinds = routes.map(({ by }) => by);
  if (new Set(kinds).size < kinds.length)
    throw new UsageError(`${file.at}routes must differ in what they go by`);
  const path = sections[kinds.indexOf("path")];
  return { routes, pathPrefix: path && prefixOf(path) };
}

function plain<B extends "header" | "path" | "namespace">(
  section: Section,
  by: B,
  ...further: readonly string[]
) {
  checkKeys(section, ["by", ...further]);
  return { by };
}

function prefixOf(section: Section): string {
  const prefix = textAt(section, "prefix") ?? (USUAL.pathPrefix as string);
  if (PREFIX.test(prefix) && !TAKEN.test(prefix) && !hasDotSegment(prefix)) return prefix;
  throw new UsageError(
    `${section.at}prefix must be a path of its own such as /db, not ${JSON.stringify(prefix)}`,
  );
}
