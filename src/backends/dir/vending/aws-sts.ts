import { LanceError } from "../../../namespace/errors.ts";
import { loadLibrary } from "../../load-library.ts";
import { toStoreError } from "../stores/failure.ts";
import { failureOf, toConfig } from "../stores/s3/client.ts";
import type { StorageOptions } from "../stores/storage-options.ts";
import type { CredentialSource, Permission } from "./vendor.ts";

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

/** The directory of a table in a bucket of S3, and what may be done with it. */
export interface PolicyScope {
  /** Partition of AWS, for example `aws` or `aws-cn`. */
  readonly partition: string;
  readonly bucket: string;
  /** Key of the directory, without a slash at its end. */
  readonly key: string;
  readonly permission: Permission;
}

const READ = ["s3:GetObject"];
const WRITE = [...READ, "s3:PutObject", "s3:AbortMultipartUpload"];

const OBJECT_ACTIONS: Readonly<Record<Permission, readonly string[]>> = {
  read: READ,
  write: WRITE,
  manage: [...WRITE, "s3:DeleteObject"],
};

/** Maximum number of characters of a session policy. */
const MAX_LENGTH = 2048;

/**
 * Returns the session policy that cuts a role to the directory of a table: its objects, and listings below it.
 *
 * A caller that may write, but not manage, may not write the marks by which the catalog knows dropped and declared tables.
 *
 * @throws LanceError InvalidInput for an empty key; Unsupported for a key that is too long for a policy
 */
export function sessionPolicy({ partition, bucket, key, permission }: PolicyScope): string {
  if (key === "") throw new LanceError("InvalidInput", "a table has no directory of its own");
  const arn = `arn:${partition}:s3:::${literal(bucket)}`;
  const inside = `${literal(key)}/`;
  const list = {
    Effect: "Allow",
    Action: "s3:ListBucket",
    Resource: arn,
    Condition: { StringLike: { "s3:prefix": `${inside}*` } },
  };
  const objects = {
    Effect: "Allow",
    Action: OBJECT_ACTIONS[permission],
    Resource: `${arn}/${inside}*`,
  };
  const marks = { Effect: "Deny", Action: "s3:PutObject", Resource: `${arn}/${inside}.lance-*` };
  const document = {
    Version: "2012-10-17",
    Statement: permission === "write" ? [objects, list, marks] : [objects, list],
  };
  const text = inAscii(JSON.stringify(document));
  if (text.length <= MAX_LENGTH) return text;
  throw new LanceError(
    "Unsupported",
    "the location of the table is too long for credentials of its own; describe it with vend_credentials false",
  );
}

/** Keeps policies from reading wildcards and variables in a text. */
function literal(text: string): string {
  return text.replaceAll(/[$*?]/g, (character) => `\${${character}}`);
}

/** Escapes the characters that STS refuses in a policy, which is JSON. */
function inAscii(json: string): string {
  return json.replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
