import assert from "node:assert/strict";
import { test } from "vitest";
import { failureOf as ofAzure } from "./azure/client.ts";
import { toStoreError } from "./failure.ts";
import { failureOf as ofGoogle } from "./gcs/access.ts";
import { failureOf as ofS3 } from "./s3/client.ts";

/** Errors of the libraries for credentials that are revoked, expired or gone, with a part of the message for clients. */
const REFUSALS = [
  [ofGoogle({ code: 400, response: { status: 400, data: { error: "invalid_grant" } } }), /denies access/],
  [ofGoogle({ code: 401, response: { status: 401, data: { error: { code: 401 } } } }), /denies access/],
  [ofAzure({ name: "AuthenticationError", statusCode: 400 }), /denies access/],
  [ofAzure({ name: "RestError", statusCode: 400, code: "InvalidAuthenticationInfo" }), /denies access/],
  [ofAzure({ name: "AggregateAuthenticationError" }), /has no credentials/],
  [ofS3({ name: "InvalidIdentityToken", $metadata: { httpStatusCode: 400 } }), /denies access/],
  [ofS3({ name: "CredentialsProviderError" }), /has no credentials/],
] as const;

for (const [failure, message] of REFUSALS)
  test(`${failure.code} with status ${failure.status} is ServiceUnavailable`, () => {
    const { kind, message: said } = toStoreError("any", failure);
    assert.equal(kind, "ServiceUnavailable");
    assert.match(said, message);
  });
