import type { S3Client } from "@aws-sdk/client-s3";
import type { S3Access } from "./client.ts";

/** A request as the library signs and sends it. */
export type HttpRequest = Parameters<Awaited<ReturnType<S3Client["config"]["signer"]>>["sign"]>[0];

/** Where the library sends the requests about a bucket, and how it signs them. */
export interface Target {
  /** A request without method and body, whose path is that of the bucket, without a slash at its end. */
  readonly base: HttpRequest;
  readonly signer: Awaited<ReturnType<S3Client["config"]["signer"]>>;
}

/** Name of the object by whose request the library shows its target. */
const PROBE = "k";

/** Returns the target of a bucket; undefined for one that needs more than a signature of version 4. */
export async function findTarget(
  { sdk }: Pick<S3Access, "sdk">,
  client: S3Client,
  Bucket: string,
): Promise<Target | undefined> {
  const command = new sdk.HeadObjectCommand({ Bucket, Key: PROBE });
  let request: HttpRequest | undefined;
  let scheme: Parameters<S3Client["config"]["signer"]>[0];
  command.middlewareStack.add(
    (_, context) => async (args) => {
      request = args.request as HttpRequest;
      scheme = context.authSchemes?.[0];
      // The request ends here, before it is sent.
      return { response: undefined, output: { $metadata: {} } };
    },
    { step: "build", priority: "low" },
  );
  await client.send(command);
  if (request === undefined || scheme?.name !== "sigv4" || !request.path.endsWith(`/${PROBE}`))
    return undefined;
  const base = { ...request, path: request.path.slice(0, -PROBE.length - 1) };
  return { base, signer: await client.config.signer(scheme) };
}

/** Returns a key as a path, escaped as the signature wants it. */
export function pathOfKey(key: string): string {
  return `/${key.split("/").map(escaped).join("/")}`;
}

function escaped(part: string): string {
  return encodeURIComponent(part).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
