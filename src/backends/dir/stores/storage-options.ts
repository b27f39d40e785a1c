/** Options of a storage by name, in the words of Lance and of the `object_store` crate. They contain secrets. */
export type StorageOptions = Readonly<Record<string, string>>;

/** Returns the options of the moment, whose credentials are renewed before they expire. */
export type RenewOptions = () => Promise<StorageOptions>;

/** Reads storage options, whose names ignore case and may omit the name of their service. */
export interface OptionReader {
  /** Returns the value of the first of some names, each with or without the prefix. */
  text(...names: readonly string[]): string | undefined;
  /** Returns `true` or `1`, `false` or `0` as a boolean. */
  flag(...names: readonly string[]): boolean | undefined;
  /** Returns a duration such as `30s`, `500ms` or `2 minutes`, in milliseconds. */
  duration(...names: readonly string[]): number | undefined;
  /** Returns a whole number. */
  integer(...names: readonly string[]): number | undefined;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * Creates a reader for the options of a service.
 *
 * @param prefixes the prefixes that its names may have, for example `aws_`
 * @throws Error that names an invalid option, but not its value
 */
export function createOptionReader(options: StorageOptions, prefixes: readonly string[]): OptionReader {
  const values = new Map(Object.entries(options).map(([name, value]) => [name.toLowerCase(), value]));

  function find(names: readonly string[]): readonly [name: string, value: string] | undefined {
    for (const name of names) {
      for (const prefix of [...prefixes, ""]) {
        const value = values.get(prefix + name);
        if (value !== undefined) return [prefix + name, value];
      }
    }
    return undefined;
  }
  function parsed<T>(names: readonly string[], what: string, parse: (text: string) => T | undefined) {
    const found = find(names);
    if (found === undefined) return undefined;
    const value = parse(found[1].trim().toLowerCase());
    if (value === undefined) throw new Error(`the storage option ${found[0]} must be ${what}`);
    return value;
  }
  return {
    text: (...names) => find(names)?.[1],
    flag: (...names) => parsed(names, "true or false", (text) => FLAGS.get(text)),
    duration: (...names) => parsed(names, "a duration such as 30s", parseDuration),
    integer: (...names) =>
      parsed(names, "an integer", (text) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined)),
  };
}

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

function parseDuration(text: string): number | undefined {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/.exec(text) ?? [];
  const factor = UNITS[unit] ?? UNITS[unit === "millis" ? "ms" : unit.slice(0, 1)];
  return number === undefined || factor === undefined ? undefined : Number(number) * factor;
}

/** The public options of a service: each with its name in answers, and the names that it may have without prefix. */
interface PublicOptions {
  readonly prefixes: readonly string[];
  readonly names: readonly (readonly [name: string, ...aliases: string[]])[];
}

const PUBLIC = {
  s3: {
    prefixes: ["aws_", "s3_"],
    names: [
      ["aws_endpoint", "endpoint", "endpoint_url", "endpoint_url_s3"],
      ["aws_region", "region", "default_region"],
      ["aws_virtual_hosted_style_request", "virtual_hosted_style_request"],
      ["aws_skip_signature", "skip_signature"],
      ["allow_http", "allow_http"],
    ],
  },
  az: {
    prefixes: ["azure_storage_", "azure_"],
    names: [
      ["azure_storage_account_name", "account_name"],
      ["azure_storage_endpoint", "endpoint"],
      ["azure_storage_use_emulator", "use_emulator"],
      ["allow_http", "allow_http"],
    ],
  },
} as const satisfies Readonly<Record<string, PublicOptions>>;

/**
 * Returns the options with which clients reach a storage themselves, in the words of the `object_store` crate: where it
 * is, but no credentials.
 *
 * @param options the options of the gateway, which contain secrets
 */
export function clientOptionsOf(service: keyof typeof PUBLIC, options: StorageOptions): StorageOptions {
  const { prefixes, names } = PUBLIC[service];
  const read = createOptionReader(options, prefixes);
  const found = names.flatMap(([name, ...aliases]) => {
    const value = read.text(...aliases);
    return value === undefined ? [] : [[name, name.endsWith("_endpoint") ? withoutSecrets(value) : value]];
  });
  return Object.fromEntries(found);
}

/** Removes user, password and query of a URL: a shared access signature is a query. */
function withoutSecrets(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname.replace(/\/$/, "")}`;
}
