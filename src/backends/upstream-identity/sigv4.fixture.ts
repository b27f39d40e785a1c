// The server's side of Signature Version 4, written from the specification.
import { createHash, createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** A request as a server received it. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Contents of a valid signature. */
export interface Verified {
  readonly accessKeyId: string;
  readonly region: string;
  readonly service: string;
  readonly signedHeaders: readonly string[];
  readonly payload: string;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
const encode = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Recomputes the signature of a request; returns undefined if it differs, or does not cover what was sent. */
export function verify({ method, url, headers, body }: Received, secret: string): Verified | undefined {
  const parts =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? "",
    );
  if (parts === null) return undefined;
  const [, accessKeyId = "", day = "", region = "", service = "", names = "", signature] = parts;
  const [path = "", query = ""] = url.split("?");
  const payload = String(headers["x-amz-content-sha256"] ?? sha256(body));
  if (payload !== "UNSIGNED-PAYLOAD" && payload !== sha256(body)) return undefined;
  const pairs = query
    .split("&")
    .filter(Boolean)
    .map((pair) => pair.split("=").map((part) => encode(decodeURIComponent(part))))
    .map(([name = "", value = ""]) => [name, value] as const)
    .sort(([a, b], [c, d]) => (a === c ? (b < d ? -1 : 1) : a < c ? -1 : 1));
  const signedHeaders = names.split(";");
  const canonical = [
    method,
    path.split("/").map(encode).join("/"),
    pairs.map((pair) => pair.join("=")).join("&"),
    ...signedHeaders.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, " ")}`),
    "",
    names,
    payload,
  ].join("\n");
  const date = String(headers["x-amz-date"]);
  if (!date.startsWith(day)) return undefined;
  const scope = `${day}/${region}/${service}/aws4_request`;
  const key = [day, region, service, "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${secret}`);
  const expected = hmac(key, ["AWS4-HMAC-SHA256", date, scope, sha256(canonical)].join("\n")).toString("hex");
  return expected === signature ? { accessKeyId, region, service, signedHeaders, payload } : undefined;
}
