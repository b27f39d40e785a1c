import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BUCKET, startS3 } from "../../test/clients/support/store-servers.ts";

/** Where the catalog of a soak is. */
export interface Place {
  /** Options of the gateways. */
  readonly options: readonly string[];
  /** The root; undefined for a bucket. */
  readonly directory: string | undefined;
  close(): Promise<void>;
}

/** Opens an empty place: a bucket of an S3 server of its own, or a directory. */
export async function openPlace(inBucket: boolean): Promise<Place> {
  if (inBucket) {
    const { options, close } = await startS3();
    const storage = Object.entries(options).map(([key, value]) => `--storage-option=${key}=${value}`);
    return { options: ["--root", `s3://${BUCKET}/soak`, ...storage], directory: undefined, close };
  }
  const directory = await mkdtemp(join(tmpdir(), "lance-gateway-soak-"));
  const close = () => rm(directory, { recursive: true, force: true });
  return { options: ["--root", directory], directory, close };
}
