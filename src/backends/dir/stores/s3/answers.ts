import type { Readable } from "node:stream";
import type { ListObjectsV2CommandOutput, S3Client } from "@aws-sdk/client-s3";
import { MAX_ANSWER_BYTES, readPaced } from "../paced-body.ts";
import type { TimeLimits } from "../time-limits.ts";

/** Number of times that the longest limit is that of a copy and of joining parts, which the service may hold open. */
const LONG_WAITS = 4;
const LONG = ["CopyObjectCommand", "CompleteMultipartUploadCommand"];

/** Requests about the bytes of an object. */
const OBJECT = ["GetObjectCommand", "HeadObjectCommand", "PutObjectCommand", "UploadPartCommand"];

const DELETION = ["DeleteObjectCommand", "DeleteObjectsCommand"];

/**
 * Makes a client read the answers that are not objects up to a limit in time and in size, because its own way has none, and
 * fail by those that are not the service's.
 */
export function limitAnswers(client: S3Client, { longest }: TimeLimits): S3Client {
  client.middlewareStack.add(
    (next, { commandName = "" }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as S3Answer & { body: unknown };
        const isDone = response.statusCode < 300;
        if (isDone && OBJECT.includes(commandName) && !hasTag(response)) {
          (response.body as Readable).destroy();
          throw noResult();
        }
        if (isDone && commandName === "GetObjectCommand") return result;
        const limit = LONG.includes(commandName) ? LONG_WAITS * longest : longest;
        const bytes = await readPaced(response.body as Readable, limit, MAX_ANSWER_BYTES);
        if (isDone && DELETION.includes(commandName) && !isDeletion(bytes)) throw noResult();
        response.body = bytes;
        return result;
      },
    // Nearest to the connection.
    { step: "deserialize", priority: "low" },
  );
  return client;
}

interface S3Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/**
 * Whether an answer of success has the tag that S3 gives to every object. That of a proxy, which answers with a page of its own
 * while the service is away, has none.
 */
export function hasTag({ headers }: Pick<S3Answer, "headers">): boolean {
  return headers["etag"] !== undefined;
}

/** Whether the body of a success is that of a deletion: none, or a report with an error for each object that stays. */
function isDeletion(bytes: Buffer): boolean {
  return bytes.byteLength === 0 || /<(?:DeleteResult|Error)\b/.test(bytes.toString());
}

/** Whether an answer of success is a page of a listing, and says how it goes on; the library takes any XML for an empty one. */
export function isListing(page: ListObjectsV2CommandOutput): boolean {
  const { Contents, CommonPrefixes, IsTruncated, NextContinuationToken } = page;
  if (IsTruncated === true) return NextContinuationToken !== undefined;
  return IsTruncated === false || Contents !== undefined || CommonPrefixes !== undefined;
}

/** Returns the error of a success without a result; services begin such answers before they know how the work ends. */
export function noResult(): Error {
  return Object.assign(new Error("no result"), { name: "InternalError", $metadata: { httpStatusCode: 500 } });
}
