import { fileURLToPath } from "node:url";
import { isRoot } from "../../../namespace/root.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import type { RemoteStorage } from "./remote-store.ts";
import type { RenewOptions, StorageOptions } from "./storage-options.ts";

/** A root as a user names it: a directory in a store. */
export interface OpenedStore extends RemoteStorage {
  /** Key of the root; for a disk the path as it was given. */
  readonly root: string;
}

type Opener = (bucket: string, options: StorageOptions, renew?: RenewOptions) => Promise<RemoteStorage>;

/** The stores by the scheme of their URIs; their libraries are loaded on first use. */
const SCHEMES: ReadonlyMap<string, Opener> = new Map<string, Opener>([
  ["s3", async (...place) => (await import("./s3/s3.ts")).createS3Store(...place)],
  ["gs", async (bucket, options) => (await import("./gcs/gcs.ts")).createGcsStore(bucket, options)],
  ["az", async (bucket, options) => (await import("./azure/azure.ts")).createAzureStore(bucket, options)],
]);

/**
 * Opens the store of a root: a path, `file://…`, `s3://bucket/prefix`, `gs://bucket/prefix` or
 * `az://container/prefix`. It reads and writes nothing yet.
 *
 * @param renew returns the options of the moment, whose credentials replace those of `options` (S3). Default: they stay
 * @throws Error with a single line for an invalid root or option, or a missing package
 */
export async function openStore(
  root: string,
  options: StorageOptions,
  renew?: RenewOptions,
): Promise<OpenedStore> {
  if (!isRoot(root))
    throw new Error(`the root must be a path, or a URI such as s3://bucket/prefix, not ${root}`);
  const place = placeOf(root);
  if (place === undefined) return openDisk(root);
  if (place.scheme === "file") return openDisk(fileURLToPath(root));
  const open = SCHEMES.get(place.scheme) as Opener;
  return { ...(await open(place.bucket, options, renew)), root: place.key };
}

/** A directory of a bucket, or the bucket itself. */
export interface BucketPlace {
  readonly scheme: string;
  readonly bucket: string;
  /** Key of the directory, without percent-encoding; empty for the bucket. */
  readonly key: string;
}

/**
 * Returns the place that a URI names; undefined for a path.
 *
 * @throws Error with a single line for a URI with dot segments
 */
export function placeOf(uri: string): BucketPlace | undefined {
  if (!uri.includes("://")) return undefined;
  const [, scheme = "", bucket = "", path = ""] =
    /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(?:\/([^?#]*))?$/i.exec(uri) ?? [];
  const parts = decodeURIComponent(path).split("/").filter(Boolean);
  if (parts.some((part) => part === "." || part === "..")) throw new Error(`${uri} is no plain URI`);
  return { scheme, bucket, key: parts.join("/") };
}

function openDisk(root: string): OpenedStore {
  return { store: createLocalStore(), root, engineOptions: {} };
}
