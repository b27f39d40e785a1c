import { attempt, commandLine, type Layer, type Report, readTable, refuse } from "./layers.ts";
import { type BackendKind, backendKindOf, type OptionSpec, UsageError } from "./option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "./options/groups.ts";
import { refuseIdle } from "./refuse-idle.ts";

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
