import { isIP } from "node:net";
import { availableParallelism } from "node:os";
import { ROLE_NAMES, type Role } from "../namespace/call/principal.ts";
import { isRoot } from "../namespace/root.ts";
import { parseAge as ageOf } from "../runtime/clocks.ts";
import { type Parse, UsageError } from "./option-spec.ts";

const SIZE = /^(\d+)(?: ?(B|KiB|MiB|GiB))?$/i;
const UNITS: Readonly<Record<string, number>> = { b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 };

/** Parses a number of bytes, with or without a unit: `65536`, `64KiB`, `16 MiB`, `1GiB`. */
export function parseSize(text: string): number {
  const [, digits, unit = "b"] = SIZE.exec(text) ?? [];
  const size = Number(digits) * (UNITS[unit.toLowerCase()] ?? Number.NaN);
  if (!Number.isSafeInteger(size) || size < 1)
    throw new UsageError("must be a size such as 65536, 16MiB or 1GiB");
  return size;
}

/** Creates a parser of integers within bounds. */
export function parseInteger(min: number, max: number): Parse<number> {
  const parse = (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new UsageError(`must be an integer from ${min} to ${max}`);
  };
  return Object.assign(parse, { bounds: [min, max] as const });
}

/** Maximum number of workers: more threads than any machine has cores only take memory. */
export const MAX_WORKERS = 256;

/** Parses a number of workers; `auto` is the number of cores. */
export function parseWorkers(text: string): number {
  if (text === "auto") return Math.min(availableParallelism(), MAX_WORKERS);
  try {
    return parseInteger(1, MAX_WORKERS)(text);
  } catch {
    throw new UsageError(`must be auto or an integer from 1 to ${MAX_WORKERS}`);
  }
}

/** Creates a parser that accepts a fixed set of words. */
export function parseChoice<const T extends string>(choices: readonly T[]): Parse<T> {
  const parse = (text: string): T => {
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    throw new UsageError(`must be one of ${choices.join(", ")}`);
  };
  return Object.assign(parse, { choices });
}

/** Parses `true` or `false`. */
export function parseSwitch(text: string): boolean {
  return parseChoice(["true", "false"])(text) === "true";
}

/** Parses any text that is not empty. */
export function parseText(text: string): string {
  if (text === "") throw new UsageError("must not be empty");
  return text;
}

/** Parses the root of a catalog: a path, or the URI of a place in a bucket. */
export function parseRoot(text: string): string {
  if (isRoot(parseText(text))) return text;
  throw new UsageError("must be a path, or a URI such as s3://bucket/prefix");
}

/** Parses the base address of a REST API. */
export function parseBaseUri(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? "")) return text;
  throw new UsageError("must be an address of a REST API, such as http://127.0.0.1:2333");
}

/** Parses an address of gRPC: a host and a port, or what the resolvers of gRPC know, such as `unix:/run/catalog.sock`. */
export function parseGrpcAddress(text: string): string {
  if (text === "" || /^https?:/i.test(text))
    throw new UsageError("must be a host and a port, such as catalog.internal:2333");
  return text;
}

const DURATION = /^(\d+) ?(ms|s|m|h)$/;
const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Parses a time such as `500ms`, `5s` or `2m`; returns milliseconds. */
export function parseDuration(text: string): number {
  const [, digits, unit = ""] = DURATION.exec(text) ?? [];
  const duration = Number(digits) * (DURATION_UNITS[unit] ?? Number.NaN);
  if (!(duration >= 0 && duration < 2 ** 31)) throw new UsageError("must be a time such as 500ms, 5s or 2m");
  return duration;
}

/** Parses the time after which a blocked worker is replaced; returns milliseconds. */
export function parseWorkerTimeout(text: string): number {
  const timeout = parseDuration(text);
  if (timeout < 1_000) throw new UsageError("must be at least 1s");
  return timeout;
}

/** Parses an age such as `90m`, `12h` or `7d`; returns milliseconds. */
export function parseAge(text: string): number {
  const age = ageOf(text);
  if (age === undefined) throw new UsageError("must be an age such as 90m, 12h or 7d");
  return age;
}

const PAIR = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(.*)$/s;

/** Parses a header, `Name=value`; returns the name in lower case. */
export function parseHeader(text: string): readonly [name: string, value: string] {
  const [, name, value] = PAIR.exec(text) ?? [];
  if (name === undefined || value === undefined || /[^\t -~\u0080-\u00ff]/.test(value)) {
    throw new UsageError("must be a header such as X-Tenant=blue");
  }
  return [name.toLowerCase(), value];
}

/** Parses a name and a value, `name=value`. */
export function parseNamedValue(text: string): readonly [name: string, value: string] {
  const [, name, value] = PAIR.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new UsageError("must be a name and a value: name=value");
  return [name, value];
}

/** Parses the origin of a page, as browsers send it, or `*`. */
export function parseOrigin(text: string): string {
  if (text === "*" || (URL.canParse(text) && new URL(text).origin === text)) return text;
  throw new UsageError("must be an origin such as https://app.example.com, or *");
}

/** Parses a host without a port, `*.` followed by a host for all of its subdomains, or `*`. */
export function parseHost(text: string): string {
  if (/^(?:\*|(?:\*\.)?[A-Za-z0-9._-]+)$/.test(text)) return text;
  throw new UsageError("must be a host without a port such as lance.example.com or *.example.com, or *");
}

/** Parses the role of callers with certificates, `role=pattern` of their names. */
export function parseCertificateRole(text: string): { readonly role: Role; readonly pattern: string } {
  const [, given, pattern = ""] = /^(\w+)=(.+)$/.exec(text) ?? [];
  const role = ROLE_NAMES.find((name) => name === given);
  if (role === undefined)
    throw new UsageError(
      `must be a role and a name, such as reader=*.example.org; roles are ${ROLE_NAMES.join(", ")}`,
    );
  return { role, pattern };
}

/** Parses the place of a Unix socket, `unix:` and a path; returns the path. */
export function parseSocketPath(text: string): string {
  const [, path] = /^unix:(?!\/\/)(.+)$/s.exec(text) ?? [];
  if (path === undefined || path.includes("\0"))
    throw new UsageError("must be unix: and a path, such as unix:/run/lance/gateway.sock");
  return path;
}

/** Parses the mode of a file in octal digits, such as `0660`. */
export function parseFileMode(text: string): number {
  if (!/^0?[0-7]{3}$/.test(text)) throw new UsageError("must be a mode in octal digits, such as 0660");
  return Number.parseInt(text, 8);
}

/** Parses a network of proxies: an address, with or without the length of its prefix, or `unix`. */
export function parseProxies(text: string): string {
  const [, address = "", prefix = "0"] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  if (text !== "unix" && (family === 0 || Number(prefix) > (family === 4 ? 32 : 128)))
    throw new UsageError("must be a network such as 10.0.0.0/8 or fd00::/8, an address, or unix");
  return text;
}
