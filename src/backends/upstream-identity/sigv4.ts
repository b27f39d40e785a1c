import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import type { SignatureV4 } from "@smithy/signature-v4";
import { loadLibrary } from "../load-library.ts";
import type {
  AwsCredentials,
  SignRequest,
  SigV4IdentityOptions,
  UpstreamAnswer,
  UpstreamIdentity,
} from "./identity.ts";
import { createRenewedIdentity } from "./token-cache.ts";

const USER = "the upstream identity sigv4";

/** Headers that the signature covers in addition to `host` and those of AWS: proxies do not change them. */
const COVERED = new Set(["content-type"]);
const BODY_HASH = "x-amz-content-sha256";
/** Headers that make up a signature. */
const SIGNATURE = ["authorization", "x-amz-date", "x-amz-security-token", BODY_HASH] as const;

/** Values of `x-amzn-errortype` that refuse the credentials, not their rights. */
const REFUSALS = new Set([
  "ExpiredTokenException",
  "IncompleteSignatureException",
  "InvalidClientTokenId",
  "InvalidSignatureException",
  "MissingAuthenticationTokenException",
  "UnrecognizedClientException",
]);

/**
 * Creates an identity that signs each request with AWS credentials, by Signature Version 4.
 *
 * @throws Error with a single line for a missing package.
 */
export async function createSigV4Identity(options: SigV4IdentityOptions): Promise<UpstreamIdentity> {
  const { region, service = "execute-api", signBodies = true, renewBeforeMs } = options;
  const library = await loadLibrary(USER, "@smithy/signature-v4", () => import("@smithy/signature-v4"));
  const provider = options.provider ?? (await defaultChain());
  return createRenewedIdentity({
    name: "AWS credentials",
    renewBeforeMs,
    isRefusal,
    async fetch() {
      const credentials = await provider();
      const signer = new library.SignatureV4({ credentials, region, service, sha256: Sha256 });
      const expiresAt = credentials.expiration?.getTime() ?? Number.POSITIVE_INFINITY;
      return { value: createSignRequest(signer, signBodies), expiresAt };
    },
  });
}

async function defaultChain(): Promise<() => Promise<AwsCredentials>> {
  const name = "@aws-sdk/credential-provider-node";
  const { defaultProvider } = await loadLibrary(
    USER,
    name,
    () => import("@aws-sdk/credential-provider-node"),
  );
  const find = defaultProvider();
  // This cache is the only one, so that refused credentials are not found again.
  return () => find({ forceRefresh: true });
}

function isRefusal({ status, headers }: UpstreamAnswer): boolean {
  // AWS appends the address of a description after a colon.
  const [type = ""] = String(headers["x-amzn-errortype"] ?? "").split(":");
  return status === 401 || (status === 403 && REFUSALS.has(type));
}

function createSignRequest(signer: SignatureV4, signBodies: boolean): SignRequest {
  return async ({ method, url, headers, body }) => {
    const { protocol, host, hostname, pathname, searchParams } = new URL(url);
    const covered: Record<string, string> = { host };
    for (let at = 0; at < headers.length; at += 2) {
      const name = headers[at] as string;
      if (COVERED.has(name)) covered[name] = headers[at + 1] as string;
    }
    const isKnown = body === undefined || typeof body === "string";
    if (!signBodies || !isKnown) covered[BODY_HASH] = "UNSIGNED-PAYLOAD";
    const query = Object.fromEntries(
      [...searchParams.keys()].map((name) => [name, searchParams.getAll(name)]),
    );
    const request = { method, protocol, hostname, path: pathname, query, headers: covered, body };
    const signed = await signer.sign(request);
    return Object.fromEntries(
      SIGNATURE.flatMap((name) => (name in signed.headers ? [[name, signed.headers[name] as string]] : [])),
    );
  };
}

/** SHA-256 and its HMAC in the form that the library takes. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", bytesOf(secret));
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error("a signature needs no hash twice");
  }
}

function bytesOf(secret: string | ArrayBuffer | ArrayBufferView): Uint8Array | string {
  if (typeof secret === "string") return secret;
  return ArrayBuffer.isView(secret)
    ? new Uint8Array(secret.buffer, secret.byteOffset, secret.byteLength)
    : new Uint8Array(secret);
}
