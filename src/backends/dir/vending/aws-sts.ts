import { loadLibrary } from "../../load-library.ts";
import { toStoreError } from "../stores/failure.ts";
import { failureOf, toConfig } from "../stores/s3/client.ts";
import type { StorageOptions } from "../stores/storage-options.ts";
import { sessionPolicy } from "./session-policy.ts";
import type { CredentialSource } from "./vendor.ts";

/** Options of {@link createStsSource}. */
export interface StsOptions {
  readonly bucket: string;
  /** Options of the storage, whose region and credentials also serve for STS. */
  readonly storageOptions: StorageOptions;
  readonly roleArn: string;
  readonly externalId?: string | undefined;
  /** Endpoint of a service other than that of AWS. Default: that of the region. */
  readonly endpoint?: string | undefined;
  /** Life of the credentials in milliseconds; the service may shorten it. */
  readonly durationMs: number;
}

/** Name of the sessions, by which the account's own logs tell them from others. */
const SESSION_NAME = "lance-gateway";

/**
 * Creates a source of credentials of an assumed role, whose session policy is cut to a table's directory.
 *
 * @throws Error with a single line for a missing package or an invalid option
 */
export async function createStsSource(options: StsOptions): Promise<CredentialSource> {
  const { bucket, storageOptions, roleArn, externalId, endpoint, durationMs } = options;
  const user = "--vend aws-sts";
  const sdk = await loadLibrary(user, "@aws-sdk/client-sts", () => import("@aws-sdk/client-sts"));
  const { region, credentials, maxAttempts, requestHandler, logger } = toConfig(storageOptions);
  const client = new sdk.STSClient({
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(requestHandler !== undefined && { requestHandler }),
    ...(logger !== undefined && { logger }),
  });
  const [, partition = "aws"] = roleArn.split(":");
  return {
    async issue(key, permission) {
      const Policy = sessionPolicy({ partition, bucket, key, permission });
      const command = new sdk.AssumeRoleCommand({
        RoleArn: roleArn,
        RoleSessionName: SESSION_NAME,
        DurationSeconds: Math.floor(durationMs / 1000),
        ...(externalId !== undefined && { ExternalId: externalId }),
        Policy,
      });
      const { Credentials } = await client.send(command).catch((error: unknown) => {
        throw toStoreError("STS", failureOf(error));
      });
      const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = Credentials ?? {};
      if (!AccessKeyId || !SecretAccessKey || !SessionToken || Expiration === undefined) {
        throw toStoreError("STS", { status: undefined, code: "IncompleteAnswer" });
      }
      const value = {
        aws_access_key_id: AccessKeyId,
        aws_secret_access_key: SecretAccessKey,
        aws_session_token: SessionToken,
      };
      return { value, expiresAt: Expiration.getTime() };
    },
  };
}
