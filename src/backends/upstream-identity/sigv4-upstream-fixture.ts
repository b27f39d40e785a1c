import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { type Seen, sendJson, startUpstream } from "../rest/fixture.ts";
import type { RestBackendOptions } from "../rest/options.ts";
import type { AwsCredentials, SigV4IdentityOptions } from "./identity.ts";
import { type Verified, verify } from "./sigv4.fixture.ts";

export const SECRETS = ["secret-1/+abc", "secret-2/+abc", "secret-3/+abc"];
export const TOKEN = "a session token";

/** Returns credentials whose key ids are numbered, with their secrets in {@link SECRETS}. */
export function numbered(lifeMs?: number) {
  let found = 0;
  const provider = async (): Promise<AwsCredentials> => {
    const accessKeyId = `KEY-${found + 1}`;
    const secretAccessKey = SECRETS[found] ?? "";
    found += 1;
    const expiration = lifeMs === undefined ? undefined : new Date(Date.now() + lifeMs);
    return { accessKeyId, secretAccessKey, sessionToken: TOKEN, expiration };
  };
  return { provider, count: () => found };
}

/** Returns the signer of a request, and fails for an invalid signature. */
export function signed(request: Seen): Verified {
  const key = /Credential=KEY-(\d)/.exec(request.headers.authorization ?? "")?.[1];
  const verified = verify(request, SECRETS[Number(key) - 1] ?? "");
  assert.ok(verified, `the signature of ${request.method} ${request.url} is not right`);
  assert.equal(request.headers["x-amz-security-token"], TOKEN);
  return verified;
}

export type Take = (response: ServerResponse, request: Seen) => void;

/** Starts an upstream, and the gateway's backend that signs requests to it. */
export async function signing(
  identity: Partial<SigV4IdentityOptions> = {},
  take: Take = (response) => sendJson(response, {}),
  options: Partial<RestBackendOptions> = {},
) {
  const upstream = await startUpstream(take, {
    identity: { kind: "sigv4", region: "eu-central-1", provider: numbered().provider, ...identity },
    ...options,
  });
  onTestFinished(async () => {
    await upstream.close();
  });
  return upstream;
}
