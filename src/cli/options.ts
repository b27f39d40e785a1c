import { parseArgs } from "node:util";

/** One option of the command line; the flag, the environment variable and the docs all come from it. */
export interface OptionSpec {
  readonly flag: string;
  /** The placeholder in the help; a flag without one is a switch, and `true` or `false` in the environment. */
  readonly value?: string;
  readonly help: string;
  /** The default as a user would write it; undefined when there is none. */
  readonly fallback?: string;
  /** Turns the text into the value; throws a {@link UsageError}. */
  readonly parse: (text: string) => unknown;
}

/** Wrong use of the command line: one clear line, exit code 2. */
export class UsageError extends Error {}

const SIZE = /^(\d+)(?: ?(B|KiB|MiB|GiB))?$/i;
const UNITS: Readonly<Record<string, number>> = { b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 };

/** Bytes, as a number or with a unit: `65536`, `64KiB`, `16 MiB`, `1GiB`. */
export function parseSize(text: string): number {
  const [, digits, unit = "b"] = SIZE.exec(text) ?? [];
  const size = Number(digits) * (UNITS[unit.toLowerCase()] ?? Number.NaN);
  if (!Number.isSafeInteger(size) || size < 1)
    throw new UsageError("must be a size such as 65536, 16MiB or 1GiB");
  return size;
}

function parseInteger(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new UsageError(`must be an integer from ${min} to ${max}`);
  };
}

function parseChoice<const T extends string>(choices: readonly T[]): (text: string) => T {
  return (text) => {
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    throw new UsageError(`must be one of ${choices.join(", ")}`);
  };
}

function parseSwitch(text: string): boolean {
  return parseChoice(["true", "false"])(text) === "true";
}

function parseText(text: string): string {
  if (text === "") throw new UsageError("must not be empty");
  return text;
}

/** The options of `lance-gateway serve`. */
export const SERVE_OPTIONS = {
  root: {
    flag: "root",
    value: "DIR",
    help: "The directory of the catalog; it is created when it is missing.",
    fallback: "./lance-data",
    parse: parseText,
  },
  tableDirectory: {
    flag: "table-directory",
    value: "D",
    help: 'Where manifest and tables lie, relative to the root; "." is the root itself. By default "data", or the root when it already holds a Lance catalog.',
    parse: parseText,
  },
  managedVersioning: {
    flag: "managed-versioning",
    help: "Tells clients to commit new versions of tables through the server instead of writing them on their own; a table's property table_version_tracking_enabled comes before it.",
    fallback: "false",
    parse: parseSwitch,
  },
  host: {
    flag: "host",
    value: "H",
    help: "The address to listen on.",
    fallback: "127.0.0.1",
    parse: parseText,
  },
  port: {
    flag: "port",
    value: "N",
    help: "The port to listen on; 0 takes a free one.",
    fallback: "2333",
    parse: parseInteger(0, 65_535),
  },
  logLevel: {
    flag: "log-level",
    value: "L",
    help: "What goes into the log on standard error: trace, debug (every call), info, warn, error or silent.",
    fallback: "info",
    parse: parseChoice(["trace", "debug", "info", "warn", "error", "silent"]),
  },
  maxMessageBytes: {
    flag: "max-message-size",
    value: "SIZE",
    help: "The largest JSON body, and the largest single message of the other protocols.",
    fallback: "16MiB",
    parse: parseSize,
  },
  maxUploadBytes: {
    flag: "max-upload-size",
    value: "SIZE",
    help: "The largest Arrow body of one call.",
    fallback: "1GiB",
    parse: parseSize,
  },
  maxBufferedBytes: {
    flag: "max-buffered-size",
    value: "SIZE",
    help: "How much of Arrow bodies all running calls may hold in memory together.",
    fallback: "2GiB",
    parse: parseSize,
  },
  uploadPartBytes: {
    flag: "upload-part-size",
    value: "SIZE",
    help: "How much of an Arrow body is written at once; a longer one is written in parts that become one version.",
    fallback: "32MiB",
    parse: parseSize,
  },
  indexCacheBytes: {
    flag: "index-cache-size",
    value: "SIZE",
    help: "The memory of the engine for parts of indices.",
    fallback: "256MiB",
    parse: parseSize,
  },
  metadataCacheBytes: {
    flag: "metadata-cache-size",
    value: "SIZE",
    help: "The memory of the engine for the metadata of files.",
    fallback: "128MiB",
    parse: parseSize,
  },
  maxOpenTables: {
    flag: "max-open-tables",
    value: "N",
    help: "The most tables that stay open while nobody uses them.",
    fallback: "256",
    parse: parseInteger(1, 1_000_000),
  },
  idleSeconds: {
    flag: "table-idle-seconds",
    value: "N",
    help: "How long a table stays open while nobody uses it.",
    fallback: "600",
    parse: parseInteger(1, 86_400),
  },
  drainSeconds: {
    flag: "drain-seconds",
    value: "N",
    help: "How long running calls may take to finish after SIGTERM or SIGINT.",
    fallback: "30",
    parse: parseInteger(0, 3_600),
  },
} as const satisfies Record<string, OptionSpec>;

/** The parsed options of `lance-gateway serve`. */
export interface ServeOptions {
  readonly root: string;
  readonly tableDirectory: string | undefined;
  readonly managedVersioning: boolean;
  readonly host: string;
  readonly port: number;
  readonly logLevel: string;
  readonly maxMessageBytes: number;
  readonly maxUploadBytes: number;
  readonly maxBufferedBytes: number;
  readonly uploadPartBytes: number;
  readonly indexCacheBytes: number;
  readonly metadataCacheBytes: number;
  readonly maxOpenTables: number;
  readonly idleSeconds: number;
  readonly drainSeconds: number;
}

/** A flag with the placeholder of its value, as in `--port N`. */
export function flagUsage({ flag, value }: OptionSpec): string {
  return value === undefined ? `--${flag}` : `--${flag} ${value}`;
}

/** The environment variable of an option: `LANCE_GATEWAY_` and the flag in capitals. */
export function environmentName(flag: string): string {
  return `LANCE_GATEWAY_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/**
 * Reads the options of `serve`: flags before environment variables before defaults.
 *
 * @throws UsageError, whose message names the flag or the variable.
 */
export function parseServeOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ServeOptions {
  const flags = readFlags(args);
  const entries = Object.entries<OptionSpec>(SERVE_OPTIONS).map(([key, spec]) => {
    const variable = environmentName(spec.flag);
    const fromFlag = flags[spec.flag];
    const text = fromFlag ?? environment[variable] ?? spec.fallback;
    const source = fromFlag === undefined ? variable : `--${spec.flag}`;
    return [key, text === undefined ? undefined : parseOption(spec, text, source)];
  });
  return Object.fromEntries(entries) as ServeOptions;
}

function parseOption(spec: OptionSpec, text: string, source: string): unknown {
  try {
    return spec.parse(text);
  } catch (error) {
    if (error instanceof UsageError)
      throw new UsageError(`${source} ${error.message}, not ${JSON.stringify(text)}`);
    throw error;
  }
}

function readFlags(args: readonly string[]): Readonly<Record<string, string | undefined>> {
  const options = Object.fromEntries(
    Object.values<OptionSpec>(SERVE_OPTIONS).map(({ flag, value }) => [
      flag,
      { type: value === undefined ? ("boolean" as const) : ("string" as const) },
    ]),
  );
  try {
    const { values } = parseArgs({ args: [...args], options, allowPositionals: false });
    return Object.fromEntries(Object.entries(values).map(([flag, value]) => [flag, String(value)]));
  } catch (error) {
    // The library's second sentence advises on positional arguments, of which there are none here.
    throw new UsageError(String((error as Error).message).split(". ")[0]);
  }
}
