import { LanceError } from "../../../namespace/errors.ts";
import type { Permission } from "./vendor.ts";

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
