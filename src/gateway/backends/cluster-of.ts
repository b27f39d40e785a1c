import type { ClusterOptions } from "../../backends/dir/jobs/ray/cluster.ts";
import { UsageError } from "../../config/option-spec.ts";
import { driverAddress } from "../../config/options/driver-address.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { CLUSTER_KINDS } from "../../config/options/job-engine.ts";
import { readOptionFile } from "../../config/secret-files.ts";
import type { ClusterRuns } from "../../namespace/figures.ts";
import { isJsonObject } from "../../runtime/text.ts";
import { required } from "../access/upstream-identity.ts";

/**
 * Returns the options of the cluster that does heavy work; undefined if the process does it.
 *
 * @throws UsageError for options that are missing or wrong, and for files that cannot be read
 */
export async function clusterOf(
  options: ServeOptions,
  metrics?: ClusterRuns,
): Promise<ClusterOptions | undefined> {
  const { jobEngine, rayAddresses: addresses, rayTokenFile, rayRuntimeEnv, jobEngineKinds } = options;
  if (jobEngine === "embedded") return undefined;
  if (addresses.length === 0) required(undefined, "--ray-address");
  return {
    addresses,
    token: rayTokenFile === undefined ? undefined : await textOf(rayTokenFile, "--ray-token-file"),
    gatewayUrl: driverAddress(options),
    runtimeEnv: rayRuntimeEnv === undefined ? undefined : await environmentOf(rayRuntimeEnv),
    minRows: options.jobEngineMinRows,
    kinds: jobEngineKinds.length === 0 ? CLUSTER_KINDS : jobEngineKinds,
    workers: options.rayWorkers,
    importLocations: options.importLocations,
    functions: options.functions === "on" ? { key: await keyOf(options.functionSecretKeyFile) } : undefined,
    metrics,
  };
}

/** Minimum length of the secret of which a key is made, in characters. */
const MIN_KEY_LENGTH = 32;

async function keyOf(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const flag = "--function-secret-key-file";
  const secret = await textOf(path, flag);
  if (secret.length < MIN_KEY_LENGTH)
    throw new UsageError(`${flag} ${path} must have at least ${MIN_KEY_LENGTH} characters`);
  return secret;
}

async function textOf(path: string, flag: string): Promise<string> {
  const content = (await readOptionFile(flag, path)).trim();
  if (content === "") throw new UsageError(`${flag} ${path} is empty`);
  return content;
}

async function environmentOf(path: string): Promise<Readonly<Record<string, unknown>>> {
  const text = await textOf(path, "--ray-runtime-env");
  try {
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch {
    // Said below.
  }
  throw new UsageError(`--ray-runtime-env ${path} is no JSON object`);
}
