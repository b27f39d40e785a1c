/** Kinds of backends; `other` covers the backends of plugins, packages and files. */
export const BACKEND_KINDS = [
  "dir",
  "rest",
  "grpc",
  "glue",
  "polaris",
  "lakekeeper",
  "unity",
  "other",
] as const;

/** Kinds of backends with an upstream that speaks the gateway's own API. */
export const UPSTREAM_KINDS = ["rest", "grpc"] as const;

/** Kinds of foreign catalogs that the gateway calls by its own HTTP client. */
const HTTP_CATALOG_KINDS = ["polaris", "lakekeeper", "unity"] as const;

/** Kinds of foreign catalogs. */
export const CATALOG_KINDS = ["glue", ...HTTP_CATALOG_KINDS] as const;

/** Kinds of backends whose upstream gets the gateway's headers, certificates and credentials. */
export const REMOTE_KINDS = [...UPSTREAM_KINDS, ...HTTP_CATALOG_KINDS] as const;

/** Kinds of backends whose calls are retried, limited and held back. */
export const RESILIENT_KINDS = [...UPSTREAM_KINDS, ...CATALOG_KINDS] as const;

/** Kinds of backends whose rows this gateway reads and writes, or may. */
export const ROW_KINDS = ["dir", ...RESILIENT_KINDS] as const;

/** A kind of backend. */
export type BackendKind = (typeof BACKEND_KINDS)[number];

/** Returns the kind of the backend with a name. */
export function backendKindOf(name: string): BackendKind {
  return BACKEND_KINDS.find((kind) => kind === name) ?? "other";
}

/** Parses a text; throws a {@link UsageError} that says what the text must be. */
export interface Parse<T> {
  (text: string): T;
  /** The accepted texts, if they are a fixed set. */
  readonly choices?: readonly string[];
  /** The smallest and the largest number, if it accepts integers alone. */
  readonly bounds?: readonly [min: number, max: number];
}

/** An option on which another one depends. */
export interface Need {
  readonly flag: string;
  /** Values of which it must have one. Default: any; a switch must be on, and a list must not be empty. */
  readonly is?: readonly string[];
  /** Values of which it must have none. */
  readonly isNot?: readonly string[];
  /** Whether it must not be given at all. Default: false. */
  readonly absent?: true;
  /** Kinds of backends with which it is needed. Default: all. */
  readonly with?: readonly BackendKind[];
}

/** An option; its flag, environment variable, key of the configuration file and documentation derive from this. */
export interface OptionSpec {
  readonly flag: string;
  /** Key of the configuration file. Default: the flag. */
  readonly key?: string;
  /** Placeholder in the help; a flag without a placeholder is a switch, and is `true` or `false` in the environment. */
  readonly value?: string;
  readonly help: string;
  /** The default as a user would write it; undefined if there is none. */
  readonly fallback?: string;
  readonly parse: Parse<unknown>;
  /**
   * Whether it can be given several times: its value is a list, and commas separate values in the environment variable.
   */
  readonly repeatable?: true;
  /**
   * Whether commas separate the values of a repeatable option in every source. Default: in the environment variable only.
   */
  readonly commas?: true;
  /** Whether each of its values is a name and a value, `name=value`, and a name may come once. */
  readonly named?: true;
  /**
   * Kinds of backends that it applies to. A database of the configuration file can set its own value. Default: it
   * applies to the whole server.
   */
  readonly backends?: readonly BackendKind[];
  /** Whether the configuration file can give a map as a value, which the parser gets as JSON. */
  readonly maps?: true;
  /** Whether errors must not repeat the given text. */
  readonly secret?: true;
  /** Flag of the option whose value is in the file that this option names. */
  readonly holds?: string;
  /**
   * Whether it names a file that is read only when the option takes effect, so that a running gateway takes a change of the file for one
   * of the option.
   */
  readonly isFile?: true;
  /** The options without which it does nothing; see {@link Need}. Default: it has an effect of its own. */
  readonly needs?: Need | readonly Need[];
  /**
   * Text of the short help, a line, or `false` for an option that the short help leaves to `--help-all`. Default: the first sentence of
   * `help` for a command's own option; an option that commands share is left out.
   */
  readonly common?: string | false;
  /** Whether it names the place of the data; databases do not inherit it. */
  readonly place?: true;
}

/** Options by their names in the program. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** The values of a table of options; a repeatable option has a list, which may be empty. */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends { repeatable: true }
    ? readonly ReturnType<T[K]["parse"]>[]
    : T[K] extends { fallback: string }
      ? ReturnType<T[K]["parse"]>
      : ReturnType<T[K]["parse"]> | undefined;
};

/** The environment, or a part of it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Wrong use of the command line: a single clear line, and exit code 2. */
export class UsageError extends Error {}

/** Returns a flag with the placeholder of its value, as in `--port N`. */
export function flagUsage({ flag, value, repeatable }: OptionSpec): string {
  const usage = value === undefined ? `--${flag}` : `--${flag} ${value}`;
  return repeatable ? `${usage} …` : usage;
}

/** Returns the key of an option in the configuration file. */
export function fileKey({ flag, key = flag }: OptionSpec): string {
  return key;
}

/** Returns the environment variable of an option: `LANCE_GATEWAY_` and the flag in capitals. */
export function environmentName(flag: string): string {
  return `LANCE_GATEWAY_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/** Need of options about rows: an upstream may serve its rows itself. */
export const ROWS_HERE = { flag: "rows", is: ["here"], with: RESILIENT_KINDS } as const satisfies Need;

/** Need of options about background work in a directory. */
export const MAINTENANCE = { flag: "no-maintenance", isNot: ["true"], with: ["dir"] } as const satisfies Need;

/** Needs of options about upkeep. In a directory, the properties of a table can turn on what the options turn off. */
export const UPKEEP = [
  { flag: "table-upkeep", is: ["on"], with: RESILIENT_KINDS },
  MAINTENANCE,
] as const satisfies readonly Need[];
