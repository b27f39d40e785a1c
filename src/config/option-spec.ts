/** The kinds of backends; those of plugins, packages and files are the last one. */
export const BACKEND_KINDS = ["dir", "rest", "grpc", "other"] as const;

/** The kinds of backends that have an upstream. */
export const UPSTREAM_KINDS = ["rest", "grpc"] as const;

/** A kind of backend. */
export type BackendKind = (typeof BACKEND_KINDS)[number];

/** The kind of the backend with a name. */
export function backendKindOf(name: string): BackendKind {
  return BACKEND_KINDS.find((kind) => kind === name) ?? "other";
}

/** Turns a text into a value; throws a {@link UsageError} that says what the text must be. */
export interface Parse<T> {
  (text: string): T;
  /** The texts that it takes, where it takes only some words. */
  readonly choices?: readonly string[];
}

/** One option; the flag, the environment variable, the key of the configuration file and the docs all come from it. */
export interface OptionSpec {
  readonly flag: string;
  /** The key of the configuration file. Default: the flag. */
  readonly key?: string;
  /** The placeholder in the help; a flag without one is a switch, and `true` or `false` in the environment. */
  readonly value?: string;
  readonly help: string;
  /** The default as a user would write it; undefined when there is none. */
  readonly fallback?: string;
  readonly parse: Parse<unknown>;
  /** Whether it can be given several times: its value is a list, and the environment variable has commas in it. */
  readonly repeatable?: true;
  /**
   * The kinds of backends that it is for. A database of the configuration file can have it as its own; without
   * kinds it is the whole server's.
   */
  readonly backends?: readonly BackendKind[];
  /** Whether an error must not repeat what was given. */
  readonly secret?: true;
  /** Whether it says which data is served; databases do not inherit it. */
  readonly place?: true;
}

/** Options by the names that the program has for them. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** The values of a table of options; one that repeats is a list, which may be empty. */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends { repeatable: true }
    ? readonly ReturnType<T[K]["parse"]>[]
    : T[K] extends { fallback: string }
      ? ReturnType<T[K]["parse"]>
      : ReturnType<T[K]["parse"]> | undefined;
};

/** The environment, or a part of it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Wrong use of the command line: one clear line, exit code 2. */
export class UsageError extends Error {}

/** A flag with the placeholder of its value, as in `--port N`. */
export function flagUsage({ flag, value, repeatable }: OptionSpec): string {
  const usage = value === undefined ? `--${flag}` : `--${flag} ${value}`;
  return repeatable ? `${usage} …` : usage;
}

/** The key of an option in the configuration file. */
export function fileKey({ flag, key = flag }: OptionSpec): string {
  return key;
}

/** The environment variable of an option: `LANCE_GATEWAY_` and the flag in capitals. */
export function environmentName(flag: string): string {
  return `LANCE_GATEWAY_${flag.toUpperCase().replaceAll("-", "_")}`;
}
