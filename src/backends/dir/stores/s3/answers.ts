import type { Readable } from "node:stream";
import type { ListObjectsV2CommandOutput, S3Client } from "@aws-sdk/client-s3";
import type { ObjectInfo } from "../../format/storage.ts";
import type { BucketPage, PageQuery } from "../bucket.ts";
import { MAX_ANSWER_BYTES, readPaced, type TimeLimits } from "../time-limits.ts";

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

/** Parameters of a listing's request, in the words of the protocol. */
export function listingQuery({ prefix, recursive, limit, from }: PageQuery): Record<string, string> {
  return {
    "list-type": "2",
    prefix,
    ...(!recursive && { delimiter: "/" }),
    ...(limit !== undefined && { "max-keys": String(limit) }),
    ...(from !== undefined && { "continuation-token": from }),
  };
}

/**
 * Reads a page of a listing from the XML of the service.
 *
 * @returns undefined for anything that S3 itself does not write, such as comments, sections of CDATA and prefixed names, which the library
 *   may understand
 */
export function readListing(xml: string): BucketPage | undefined {
  const [, content] =
    /^(?:\s*<\?xml[^>]*\?>)?\s*<ListBucketResult(?:\s[^>]*)?>(.*)<\/ListBucketResult>\s*$/s.exec(xml) ?? [];
  if (content === undefined || content.includes("<!")) return undefined;
  const objects: BucketPage["objects"][number][] = [];
  const prefixes: string[] = [];
  let areNamed = true;
  const rest = content.replace(ENTRY, (_, kind: string, fields: string) => {
    const element = kind === "CommonPrefixes" ? "Prefix" : "Key";
    const name = fieldIn(fields, element);
    if (name === undefined || fields.split(`<${element}`).length > 2) areNamed = false;
    else if (kind === "CommonPrefixes") prefixes.push(name);
    else objects.push(objectOf(name, fields));
    return "";
  });
  if (!areNamed || /<(?:(?:Contents|CommonPrefixes)\b|EncodingType>[^<])/.test(rest)) return undefined;
  const isTruncated = fieldIn(rest, "IsTruncated");
  const next = isTruncated === "true" ? fieldIn(rest, "NextContinuationToken") : undefined;
  if (isTruncated !== (next === undefined ? "false" : "true")) return undefined;
  return { objects, prefixes, next };
}

const ENTRY = /<(Contents|CommonPrefixes)>(.*?)<\/\1>/gs;

function objectOf(key: string, fields: string): BucketPage["objects"][number] {
  const modified = fieldIn(fields, "LastModified");
  const eTag = fieldIn(fields, "ETag");
  const LastModified = modified === undefined ? undefined : new Date(modified);
  return {
    ...infoOf(key, Number(fieldIn(fields, "Size") ?? 0), {
      LastModified,
      ETag: eTag,
    }),
    tag: eTag,
  };
}

/** Returns the text of the first element of a name, which has no other elements. */
function fieldIn(xml: string, name: string): string | undefined {
  const start = xml.indexOf(`<${name}>`);
  const end = start < 0 ? -1 : xml.indexOf("<", start + name.length + 2);
  return end < 0 ? undefined : unescaped(xml.slice(start + name.length + 2, end));
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescaped(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#x([\da-f]+)|#(\d+)|(\w+));/gi,
    (whole, hex?: string, decimal?: string, name?: string) => {
      if (name !== undefined) return ENTITIES[name] ?? whole;
      return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
    },
  );
}

/** Returns a page as the library has read it. */
export function pageOf(page: ListObjectsV2CommandOutput): BucketPage {
  const { Contents = [], CommonPrefixes = [], IsTruncated, NextContinuationToken } = page;
  return {
    objects: Contents.map((object) => ({
      ...infoOf(object.Key ?? "", object.Size, object),
      tag: object.ETag,
    })),
    prefixes: CommonPrefixes.map(({ Prefix = "" }) => Prefix),
    next: IsTruncated ? NextContinuationToken : undefined,
  };
}

/** Returns the facts of an object from those that the service has about it. */
export function infoOf(
  key: string,
  size = 0,
  { LastModified, ETag: eTag }: { LastModified?: Date | undefined; ETag?: string | undefined },
): ObjectInfo {
  return { key, size, modifiedMillis: LastModified?.getTime() ?? 0, eTag };
}
