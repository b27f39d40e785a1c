import type { S3Client } from "@aws-sdk/client-s3";
import { MAX_ANSWER_BYTES, readPaced } from "../time-limits.ts";
import { hasTag, noResult } from "./answers.ts";
import type { S3Access } from "./client.ts";

/** A request of the S3 protocol about an object, or a listing. */
export interface PlainRequest {
  readonly method: "GET" | "HEAD" | "PUT";
  /** Default: the bucket itself. */
  readonly key?: string;
  /** Default: no parameters. */
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Maximum size of the part that a GET asks for, in bytes. Default: that of an object. */
  readonly maxBytes?: number;
  /** Statuses that are results, beside those of success. Default: none. */
  readonly expected?: readonly number[];
}

/** Options of an attempt, in the words of the library. */
export interface PlainOptions {
  /** In milliseconds. */
  readonly requestTimeout: number;
  readonly abortSignal?: AbortSignal;
}

/** An answer of success, or of a status that the request expects. */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly bytes: Buffer;
}

/**
 * Makes one attempt of a request.
 *
 * @returns undefined if the request needs the library, which knows redirects and corrects clocks, and was not carried
 *   out
 * @throws the errors of the library's connections; an error with `$metadata` as the library has it for a failure of the
 *   service
 */
export type SendPlain = (request: PlainRequest, options: PlainOptions) => Promise<PlainAnswer | undefined>;

/** Status of an answer with a part of an object. */
const PARTIAL = 206;

/** Difference of clocks from which services refuse requests, in milliseconds. */
const MAX_SKEW = 300_000;

/**
 * Creates the way for small requests that leaves the library's command stack out (docs/adr/0010). The library still
 * decides where the requests go, finds the credentials, signs, and holds the connections.
 */
export function createPlainWay(access: S3Access, client: S3Client, Bucket: string): SendPlain {
  const { limits } = access;
  let target: Promise<Target | undefined> | undefined;

  return async ({ method, key, query, headers, body, maxBytes, expected = [] }, options) => {
    target ??= findTarget(access, client, Bucket);
    const found = await target.catch(() => {
      // The library's own attempt shows the failure, which may pass.
      target = undefined;
    });
    if (found === undefined) return undefined;
    const { base, signer } = found;
    const request: HttpRequest = {
      ...base,
      method,
      path: base.path + pathOfKey(key ?? ""),
      query: { ...base.query, ...query },
      headers: { ...base.headers, ...headers, ...(body && { "content-length": String(body.byteLength) }) },
      body,
    };
    const signingDate = new Date(Date.now() + client.config.systemClockOffset);
    const signed = await signer.sign(request, { signingDate });
    const { response } = await client.config.requestHandler.handle(signed as never, options);
    const { statusCode: status, headers: answered } = response;
    const isObject = method === "GET" && key !== undefined && status < 300;
    const limit = !isObject ? MAX_ANSWER_BYTES : status === PARTIAL ? maxBytes : undefined;
    const bytes = await readPaced(response.body, limits.longest, limit);
    if (status < 300 && key !== undefined && !hasTag(response)) throw noResult();
    if (status < 300) return { status, headers: answered, bytes };
    const code = /<Code>(\w+)<\/Code>/.exec(bytes.toString())?.[1];
    if (expected.includes(status) && code !== "NoSuchBucket") return { status, headers: answered, bytes };
    if (status < 400 || isSkewed(signingDate, answered.date)) return undefined;
    const $metadata = { httpStatusCode: status, requestId: answered["x-amz-request-id"] };
    throw Object.assign(new Error("the service refuses a request"), { name: code ?? "Error", $metadata });
  };
}

/** Whether a service may have refused a request because of its time; the library corrects the same differences. */
function isSkewed(signingDate: Date, date = ""): boolean {
  return Math.abs(Date.parse(date) - signingDate.getTime()) >= MAX_SKEW;
}

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
