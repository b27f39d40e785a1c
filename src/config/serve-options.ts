import { type BackendKind, type OptionSpec, UsageError } from "./option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "./options.ts";
import { type Environment, environmentLayer, flagLayer, type Layer, settleTable } from "./parse-options.ts";

/** What a backend of each kind cannot do without. */
export const PLACES: Readonly<Record<BackendKind, OptionSpec>> = {
  dir: SERVE_OPTIONS.root,
  rest: SERVE_OPTIONS.uris,
  grpc: SERVE_OPTIONS.addresses,
};

/**
 * Reads the options of `serve` from flags and the environment alone.
 *
 * @throws UsageError, whose message names the flag or the variable.
 */
export function parseServeOptions(args: readonly string[], environment: Environment): ServeOptions {
  return settleOptions([flagLayer(args), environmentLayer(environment)]);
}

/**
 * Takes each option from the first source that says something of it; defaults come last. Without `backend` its kind
 * follows from the place that is given.
 *
 * @throws UsageError, when one source contradicts itself.
 */
export function settleOptions(layers: readonly Layer[]): ServeOptions {
  const options = settleTable(SERVE_OPTIONS, layers) as ServeOptions;
  for (const layer of layers) {
    const kind = kindIn(layer);
    if (kind === undefined) continue;
    refuseOtherKinds(layer, kind);
    return { ...options, backend: kind };
  }
  return options;
}

/** The kind of backend that a source says, or that the place follows from which it gives. */
export function kindIn(layer: Layer): BackendKind | undefined {
  if (layer(SERVE_OPTIONS.backend) !== undefined) {
    return settleTable({ backend: SERVE_OPTIONS.backend }, [layer]).backend;
  }
  const kinds = (Object.keys(PLACES) as BackendKind[]).filter((kind) => layer(PLACES[kind]) !== undefined);
  const [one, other] = kinds.map((kind) => layer(PLACES[kind])?.source);
  if (other !== undefined) throw new UsageError(`${one} and ${other} contradict each other`);
  return kinds[0];
}

function refuseOtherKinds(layer: Layer, kind: BackendKind): void {
  for (const spec of Object.values<OptionSpec>(SERVE_OPTIONS)) {
    const given = spec.backends === undefined || spec.backends.includes(kind) ? undefined : layer(spec);
    if (given === undefined) continue;
    const right = spec.backends?.join(" or ");
    throw new UsageError(`${given.source} is for the backend ${right}, and the backend is ${kind}`);
  }
}
