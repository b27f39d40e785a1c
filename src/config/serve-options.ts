import { nearest } from "./config-file.ts";
import {
  attempt,
  commandLine,
  findGiven,
  type Given,
  type Layer,
  type Report,
  readTable,
  refuse,
} from "./layers.ts";
import {
  type BackendKind,
  backendKindOf,
  type Environment,
  environmentName,
  type Need,
  type OptionSpec,
  type OptionTable,
  UsageError,
} from "./option-spec.ts";
import { CLIENT_OPTIONS } from "./options/client.ts";
import { SERVE_OPTIONS, type ServeOptions } from "./options/groups.ts";

/** The required option of each kind of backend; a kind without one has a default place. */
export const PLACES: Readonly<Record<BackendKind, OptionSpec | undefined>> = {
  dir: SERVE_OPTIONS.root,
  rest: SERVE_OPTIONS.uris,
  grpc: SERVE_OPTIONS.addresses,
  glue: undefined,
  polaris: SERVE_OPTIONS.uris,
  lakekeeper: SERVE_OPTIONS.uris,
  unity: SERVE_OPTIONS.uris,
  other: SERVE_OPTIONS.backend,
};

/** Kinds of backends that follow from their place. */
const IMPLIED = ["dir", "rest", "grpc", "other"] as const satisfies readonly BackendKind[];

/**
 * Reads the options of `serve`. An earlier source overrides a later one, and every source overrides the defaults.
 * Without `backend`, the given place determines the backend.
 *
 * @param report Default: the first mistake ends the reading.
 * @param isShared whether other databases have the same command line, some of whose options are for them. Default: false.
 * @throws UsageError with a single line that names the source, also if a source contradicts itself.
 */
export function readServeOptions(
  layers: readonly Layer[],
  report: Report = refuse,
  isShared = false,
): ServeOptions {
  const options = readTable(SERVE_OPTIONS, layers, report);
  const flags = commandLine(layers);
  let { backend } = options;
  for (const layer of layers) {
    const named = attempt(report, () => backendIn(layer));
    if (named === undefined) continue;
    attempt(report, () => refuseOtherKinds(layer, named));
    backend = named;
    break;
  }
  if (!isShared) attempt(report, () => refuseOtherKinds(flags, backend));
  const specs = Object.entries<OptionSpec>(SERVE_OPTIONS);
  // A database may have the option that another one needs.
  const own = isShared ? specs.filter(([, { backends }]) => backends === undefined) : specs;
  attempt(report, () => refuseIdle(Object.fromEntries(own), flags, layers, backendKindOf(backend)));
  return { ...options, backend };
}

/** Refuses options of the command line that are for a kind of backend that no database has. */
export function refuseUnservedKinds(layers: readonly Layer[], kinds: readonly BackendKind[]): void {
  const flags = commandLine(layers);
  for (const spec of Object.values<OptionSpec>(SERVE_OPTIONS)) {
    const { backends } = spec;
    const source = backends?.some((kind) => kinds.includes(kind)) === false && flags(spec)?.source;
    if (source)
      throw new UsageError(`${source} is for the backend ${backends?.join(" or ")}, which no database has`);
  }
}

/** Returns the backend that a source names or that follows from the place that it gives. */
export function backendIn(layer: Layer): string | undefined {
  if (layer(SERVE_OPTIONS.backend) !== undefined) {
    return readTable({ backend: SERVE_OPTIONS.backend }, [layer]).backend;
  }
  const given = (kind: BackendKind) => PLACES[kind] && layer(PLACES[kind]);
  const kinds = IMPLIED.filter((kind) => given(kind) !== undefined);
  const [one, other] = kinds.map((kind) => given(kind)?.source);
  if (other !== undefined) throw new UsageError(`${one} and ${other} contradict each other`);
  return kinds[0];
}

/**
 * Refuses options of another kind of backend in a source. Variables and files are for several commands, so that only the source
 * that names the backend, and the command line, are checked.
 */
function refuseOtherKinds(layer: Layer, backend: string): void {
  const kind = backendKindOf(backend);
  for (const spec of Object.values<OptionSpec>(SERVE_OPTIONS)) {
    const given = spec.backends === undefined || spec.backends.includes(kind) ? undefined : layer(spec);
    if (given === undefined) continue;
    const right = spec.backends?.includes("other") ? "of a plugin" : spec.backends?.join(" or ");
    throw new UsageError(`${given.source} is for the backend ${right}, and the backend is ${backend}`);
  }
}

/**
 * Refuses options of the command line that have no effect, because the option is missing or has another value that they need: they would
 * do nothing, and a user would believe otherwise. Variables and files are for several commands and may say more than one of them uses.
 *
 * @param options all options of the command
 * @param flags the command line
 * @param layers all sources, the most important first
 * @param kind kind of the backend. Default: the options are not for some kinds of backends alone
 * @throws UsageError that names both options
 */
export function refuseIdle(
  options: OptionTable,
  flags: Layer,
  layers: readonly Layer[],
  kind?: BackendKind,
): void {
  const specs = Object.values<OptionSpec>(options);
  for (const spec of specs) {
    const given = flags(spec);
    if (given === undefined || isOff(spec, given)) continue;
    for (const need of [spec.needs ?? []].flat()) {
      if (kind !== undefined && need.with?.includes(kind) === false) continue;
      const other = specs.find(({ flag }) => flag === need.flag);
      if (other === undefined || isMet(need, textsOf(other, layers))) continue;
      throw new UsageError(`${given.source} has no effect ${reasonOf(need)}`);
    }
  }
}

/** An option that is turned off wants no effect. */
function isOff({ value, parse }: OptionSpec, { texts }: Given): boolean {
  return texts.at(-1) === (value === undefined ? "false" : parse.choices?.includes("off") && "off");
}

function textsOf(spec: OptionSpec, layers: readonly Layer[]): readonly string[] {
  const texts = findGiven(spec, layers)?.texts ?? (spec.fallback === undefined ? [] : [spec.fallback]);
  return texts.flatMap((text) => (spec.commas ? text.split(",").map((part) => part.trim()) : [text]));
}

function isMet({ is, isNot = ["false"], absent }: Need, texts: readonly string[]): boolean {
  if (absent) return texts.length === 0;
  if (is !== undefined) return texts.some((text) => is.includes(text));
  return texts.some((text) => !isNot.includes(text));
}

function reasonOf({ flag, is, isNot, absent }: Need): string {
  if (absent) return `with --${flag}`;
  if (isNot !== undefined) return `with --${flag} ${isNot.join(" or ")}`;
  return is === undefined ? `without --${flag}` : `without --${flag} ${is.join(" or ")}`;
}

/** Returns a line for each variable that looks like that of an option and is none; those of Kubernetes' services do not. */
export function unknownVariables(environment: Environment): readonly string[] {
  const known = Object.values({ ...SERVE_OPTIONS, ...CLIENT_OPTIONS }).map(({ flag }) =>
    environmentName(flag),
  );
  const prefix = environmentName("");
  return Object.keys(environment).flatMap((name) => {
    if (!name.startsWith(prefix) || known.includes(name)) return [];
    const meant = nearest(
      name.slice(prefix.length),
      known.map((each) => each.slice(prefix.length)),
    );
    return meant === undefined
      ? []
      : [`${name} is unknown and has no effect; did you mean ${prefix}${meant}?`];
  });
}
