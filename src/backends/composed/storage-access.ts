import { realpathSync } from "node:fs";
import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import { isInside } from "../dir/catalog/base/location-names.ts";
import type { ObjectStore } from "../dir/format/storage.ts";
import { placeOf } from "../dir/stores/open-store.ts";
import { createOptionReader, type OptionReader, type StorageOptions } from "../dir/stores/storage-options.ts";

/** A location of a table that the gateway may open. */
export interface AllowedPlace {
  /** Root of the storage: `/`, or a bucket such as `s3://bucket`. */
  readonly root: string;
  /** Key of the table's directory in that storage. */
  readonly key: string;
}

/** A location that an upstream has named, and whether it came with credentials. */
export interface NamedLocation {
  readonly id: Identifier;
  readonly location: string;
  readonly hasCredentials: boolean;
}

interface Prefix {
  readonly root: string;
  readonly key: string;
  /** Path of a directory as the operator wrote it. Default: the prefix is in a bucket */
  readonly written?: string;
}

/** Schemes of buckets that the gateway can open. */
const BUCKETS: ReadonlySet<string> = new Set(["s3", "gs", "az"]);

/**
 * Creates the check of the locations that an upstream names.
 *
 * Without prefixes, a location in a bucket is allowed if the upstream has sent credentials for it, which decide what they open; a location on a
 * disk, or one that only the gateway's own credentials open, is not.
 *
 * @param prefixes directories and places in buckets below which tables may be
 * @returns the place of a location; throws LanceError PermissionDenied for any other one
 * @throws Error with a single line for a prefix that is neither a path nor a place in a bucket
 */
export function createLocationCheck(prefixes: readonly string[]): (named: NamedLocation) => AllowedPlace {
  const allowed = prefixes.map(prefixOf);
  return (named) => {
    const found = readLocation(named);
    if (allowed.length === 0 && found.root !== "/" && named.hasCredentials) return found;
    for (const prefix of allowed) {
      const rest = restBelow(prefix, found);
      if (rest !== undefined) return { root: found.root, key: join(prefix.key, rest) };
    }
    throw refused(
      named.id,
      allowed.length === 0
        ? "which no --allowed-location names; start the gateway with --allowed-location and a directory or bucket above it"
        : "which is outside every --allowed-location",
    );
  };
}

/**
 * Creates the check of directories outside of a table whose files a version of the table names, as that of a shallow clone does: what the gateway
 * opens with its own rights must be allowed.
 */
export function createBaseCheck(store: ObjectStore, prefixes: readonly string[] = []) {
  const check = createLocationCheck(prefixes);
  return async (id: Identifier, location: string): Promise<void> => {
    const { root, key } = check({ id, location, hasCredentials: false });
    if (root === "/" && (await store.files?.leadsThroughLink(key)))
      throw refused(id, "with files behind a symbolic link");
  };
}

/** Reads a location. @throws LanceError PermissionDenied for one that is not plain */
function readLocation(named: NamedLocation): AllowedPlace {
  const { id, location } = named;
  const text = location.replace(/\/+$/, "");
  const place = bucketOf(id, text);
  if (place !== undefined && place.scheme !== "file") {
    if (!BUCKETS.has(place.scheme)) throw refused(id, "in a storage that the gateway cannot open");
    if (place.key === "" || place.bucket === "") throw refused(id, "that is a whole bucket");
    return { root: `${place.scheme}://${place.bucket}`, key: place.key };
  }
  const path = place === undefined ? text : pathOfUri(id, text);
  if (!path.startsWith("/") || resolve(path) !== path || path.includes("\0"))
    throw refused(id, "that is not a plain absolute path");
  return { root: "/", key: path.slice(1) };
}

function bucketOf(id: Identifier, text: string) {
  try {
    return placeOf(text);
  } catch {
    throw refused(id, "that is not a plain URI");
  }
}

function pathOfUri(id: Identifier, uri: string): string {
  try {
    return fileURLToPath(uri);
  } catch {
    throw refused(id, "that is not a plain URI");
  }
}

function prefixOf(text: string): Prefix {
  const place = placeOf(text);
  if (place === undefined || place.scheme === "file") {
    const written = resolve(place === undefined ? text : fileURLToPath(text));
    return { root: "/", key: realPathOf(written).slice(1), written };
  }
  if (!BUCKETS.has(place.scheme) || place.bucket === "")
    throw new Error(
      `--allowed-location must be a directory or a place such as s3://bucket/prefix, not ${text}`,
    );
  return { root: `${place.scheme}://${place.bucket}`, key: place.key };
}

/** Returns a directory without links on the way to it; a missing one stays as it is written. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Returns what follows a prefix in a place; undefined if the place is elsewhere, or is the prefix itself. */
function restBelow(prefix: Prefix, place: AllowedPlace): string | undefined {
  if (prefix.root !== place.root) return undefined;
  const directories = prefix.written === undefined ? [prefix.key] : [prefix.key, prefix.written.slice(1)];
  for (const directory of directories) {
    const [above, below] = [resolve("/", directory), resolve("/", place.key)];
    if (above !== below && isInside(above, below)) return relative(above, below);
  }
  return undefined;
}

function join(directory: string, rest: string): string {
  return directory === "" ? rest : `${directory}/${rest}`;
}

function refused(id: Identifier, where: string): LanceError {
  const name = JSON.stringify(joinIdentifier(id));
  return new LanceError("PermissionDenied", `the upstream catalog has ${name} at a location ${where}`);
}

/** Checks whether options open a storage by themselves, for the gateway's library and for the engine, by schemes. */
const IS_COMPLETE: Readonly<Record<string, (options: StorageOptions) => boolean>> = {
  // The engine knows no other prefix.
  s3: (options) => {
    const read = createOptionReader(options, ["aws_"]);
    return has(read, "access_key_id") && has(read, "secret_access_key");
  },
  gs: (options) => {
    const read = createOptionReader(options, ["google_"]);
    const key = read.text("service_account_key");
    return key === undefined ? Boolean(options["google_storage_token"]?.trim()) : isServiceKey(key);
  },
  az: (options) => {
    const read = createOptionReader(options, ["azure_storage_", "azure_"]);
    const [key, sas] = [
      has(read, "account_key", "access_key", "master_key"),
      has(read, "sas_token", "sas_key"),
    ];
    return key || sas;
  },
};

/**
 * Options by which a library signs in as somebody else, reads a file of this machine, or asks another service for credentials, and those that
 * the gateway's library knows and the engine does not.
 */
const OTHER_IDENTITY =
  /^(?:gcs|s3)_|file|profile|role|imds|metadata|msi|identity|federated|authority|tenant|client_(?:id|secret)|container_credentials|credentials_(?:full_|relative_)?uri|azure_cli|bearer|fabric|application_credentials|service_account(?:_path)?$|^proxy_|_proxy$/i;

/** Variables of the environment with an identity that the engine takes for Azure's storage rather than a signature in the options. */
const AZURE_IDENTITY =
  /^azure_(?:storage_)?(?:account_key|access_key|master_key|client_id|federated_token_file|token|bearer_token)$/i;

/**
 * Returns the options with which an upstream's own credentials open a storage; undefined if the upstream sends none that are complete, so that
 * a library would look for the gateway's.
 *
 * @param location of a table, in a bucket; no credentials open a directory of a disk
 * @param environment of the process
 */
export function vendedAccess(
  location: string,
  options: StorageOptions,
  environment: Readonly<Record<string, string | undefined>>,
): StorageOptions | undefined {
  const [scheme = ""] = location.split("://", 1);
  if (IS_COMPLETE[scheme]?.(options) !== true) return undefined;
  if (scheme === "az" && Object.keys(environment).some((name) => AZURE_IDENTITY.test(name))) return undefined;
  return Object.fromEntries(Object.entries(options).filter(([name]) => !OTHER_IDENTITY.test(name)));
}

function has(read: OptionReader, ...names: readonly string[]): boolean {
  return Boolean(read.text(...names)?.trim());
}

/** Whether a text is the key of a service account: other kinds of credentials name files and addresses from which they follow. */
function isServiceKey(text: string | undefined): boolean {
  if (text === undefined) return false;
  try {
    const key: unknown = JSON.parse(text);
    if (typeof key !== "object" || key === null) return false;
    const { type, private_key, client_email, disable_oauth } = key as Readonly<Record<string, unknown>>;
    return (
      type === "service_account" && Boolean(private_key) && Boolean(client_email) && disable_oauth !== true
    );
  } catch {
    return false;
  }
}
