import type { Readable } from "node:stream";
import type { S3Client } from "@aws-sdk/client-s3";
import { MAX_ANSWER_BYTES, readPaced } from "./paced-body.ts";
import type { TimeLimits } from "./time-limits.ts";

/** Number of times that the longest limit is that of a copy and of joining parts, which the service may hold open. */
const LONG_WAITS = 4;
const LONG = ["CopyObjectCommand", "CompleteMultipartUploadCommand"];

/** Makes a client read the answers that are not objects up to a limit in time and in size; its own way has none. */
export function limitAnswers(client: S3Client, { longest }: TimeLimits): S3Client {
  client.middlewareStack.add(
    (next, { commandName = "" }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as { readonly statusCode: number; body: unknown };
        if (commandName === "GetObjectCommand" && response.statusCode < 300) return result;
        const limit = LONG.includes(commandName) ? LONG_WAITS * longest : longest;
        response.body = await readPaced(response.body as Readable, limit, MAX_ANSWER_BYTES);
        return result;
      },
    // Nearest to the connection.
    { step: "deserialize", priority: "low" },
  );
  return client;
}
