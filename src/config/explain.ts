import { SECRET_NAME } from "../runtime/text.ts";
import type { Sources } from "./configuration.ts";
import { findGiven, type Layer, refuse } from "./layers.ts";
import { backendKindOf, environmentName, fileKey, type OptionSpec } from "./option-spec.ts";
import { SERVE_OPTIONS } from "./options/groups.ts";
import { backendIn, PLACES, readServeOptions } from "./serve-options.ts";

/** Kinds of places that a value can come from. */
export type Origin = "flag" | "environment" | "file" | "default";

type Scalar = string | number | boolean;

/** The value of an option, as a user would write it, without secrets. */
export interface ShownValue {
  readonly value: Scalar | readonly Scalar[];
  readonly from: Origin;
  /** Flag, variable, or file and path of the key. Default: the value is the default. */
  readonly at?: string;
}

/** Values of options by their keys in the configuration file; options without a value are left out. */
export type ShownOptions = Readonly<Record<string, ShownValue>>;

/** A configuration for people: what is in effect, and where each value comes from. */
export interface ShownConfiguration {
  readonly options: ShownOptions;
  /** Options of each database for its kind, its own and inherited ones. Default: there is a single database. */
  readonly databases?: Readonly<Record<string, ShownOptions>>;
  readonly routes?: unknown;
  readonly "default-database"?: unknown;
}

const MASK = "***";
const SPECS: readonly OptionSpec[] = Object.values(SERVE_OPTIONS);

/** Removes what looks like a credential from a text. */
export type Redact = (text: string) => string;

/**
 * Shows the configuration that sources give, with `***` in place of secrets.
 *
 * @param redact applied to every value that is not a secret as a whole.
 * @throws UsageError for mistakes that keep values from being read.
 */
export function explain({ layers, file, databases }: Sources, redact: Redact): ShownConfiguration {
  const { routes, "default-database": fallback } = file?.entries ?? {};
  const kind = backendKindOf(readServeOptions(layers, refuse, databases !== undefined).backend);
  if (databases === undefined) {
    return {
      options: show(
        layers,
        SPECS.filter(({ backends }) => backends?.includes(kind) ?? true),
        redact,
      ),
    };
  }
  const shown = [...databases].map(([name, own]) => {
    const kindOfOwn = backendKindOf(readServeOptions(own, refuse, true).backend);
    return [
      name,
      show(
        own,
        SPECS.filter(({ backends }) => backends?.includes(kindOfOwn)),
        redact,
      ),
    ] as const;
  });
  return {
    options: show(
      layers,
      SPECS.filter(({ backends }) => backends === undefined),
      redact,
    ),
    databases: Object.fromEntries(shown),
    ...(routes !== undefined && { routes }),
    ...(fallback !== undefined && { "default-database": fallback }),
  };
}

function show(layers: readonly Layer[], specs: readonly OptionSpec[], redact: Redact): ShownOptions {
  const entries = specs.flatMap((spec) => {
    if (spec === SERVE_OPTIONS.backend) return [[fileKey(spec), showBackend(layers)] as const];
    const given = findGiven(spec, layers);
    const texts = given?.texts ?? (spec.fallback === undefined ? [] : [spec.fallback]);
    const values = texts.map((text) => masked(spec, text, redact));
    const value = spec.repeatable ? values : values.at(-1);
    if (value === undefined || (spec.repeatable && given === undefined)) return [];
    const origin = given === undefined ? {} : { at: given.source };
    return [[fileKey(spec), { value, from: originOf(spec, given?.source), ...origin }] as const];
  });
  return Object.fromEntries(entries);
}

/** Shows the backend: the one that a source names, or that follows from the place that it gives. */
function showBackend(layers: readonly Layer[]): ShownValue {
  for (const layer of layers) {
    const value = backendIn(layer);
    if (value === undefined) continue;
    const spec = [SERVE_OPTIONS.backend, PLACES[backendKindOf(value)]].find(
      (each) => each && layer(each),
    ) as OptionSpec;
    const at = layer(spec)?.source as string;
    return { value, from: originOf(spec, at), at };
  }
  return { value: SERVE_OPTIONS.backend.fallback, from: "default" };
}

function originOf({ flag }: OptionSpec, source: string | undefined): Origin {
  if (source === undefined) return "default";
  if (source.startsWith(`--${flag}`)) return "flag";
  return source.startsWith(environmentName(flag)) ? "environment" : "file";
}

/** Returns what may be shown of secrets; everything else loses what looks like a credential. */
const SHOWN: Readonly<Record<string, (text: string) => string>> = {
  header: (text) => afterName(text, () => MASK),
  "backend-option": (text) => afterName(text, () => MASK),
  "storage-option": (text) => afterName(text, (value, name) => (SECRET_NAME.test(name) ? MASK : value)),
  "client-storage-option": (text) => text,
  "webhook-url": (text) => `${URL.parse(text)?.origin ?? ""}/${MASK}`,
  // It cannot have a password.
  "rate-limit-redis": (text) => text,
};

function masked(spec: OptionSpec, text: string, redact: Redact): Scalar {
  if (spec.secret) return (SHOWN[spec.flag] ?? (() => MASK))(text);
  if (spec.value === undefined) return text === "true";
  const parsed = spec.repeatable ? undefined : spec.parse(text);
  return typeof parsed === "number" && String(parsed) === text ? parsed : redact(text);
}

function afterName(text: string, show: (value: string, name: string) => string): string {
  const [name = "", ...rest] = text.split("=");
  return `${name}=${show(rest.join("="), name)}`;
}
