import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { UsageError } from "../../config/option-spec.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { upstreamIdentityOf } from "./upstream-identity.ts";

function identityOf(flags: readonly string[], environment: Record<string, string> = {}) {
  const layers = sourcesOf(["--uri", "http://127.0.0.1:1", ...flags], {});
  return upstreamIdentityOf(readServeOptions(layers), environment);
}

describe("the credentials of an upstream", () => {
  test("are the client's unless an option says otherwise", () => {
    assert.deepEqual(identityOf([]), { kind: "passthrough" });
  });

  test("sign for a region of the options or of the environment of AWS", () => {
    const sigv4 = ["--upstream-identity", "sigv4"];
    const expected = { kind: "sigv4", region: "eu-west-1", service: "execute-api", signBodies: true };
    assert.deepEqual(identityOf([...sigv4, "--aws-region", "eu-west-1"], { AWS_REGION: "other" }), expected);
    assert.deepEqual(identityOf(sigv4, { AWS_REGION: "eu-west-1" }), expected);
    assert.deepEqual(identityOf(sigv4, { AWS_DEFAULT_REGION: "eu-west-1" }), expected);
    const lattice = [
      ...sigv4,
      "--aws-region",
      "a",
      "--aws-service",
      "vpc-lattice-svcs",
      "--aws-unsigned-bodies",
    ];
    assert.deepEqual(identityOf(lattice), {
      kind: "sigv4",
      region: "a",
      service: "vpc-lattice-svcs",
      signBodies: false,
    });
  });

  test("name the option that is missing", () => {
    for (const [kind, missing] of [
      ["service", /--upstream-api-key or --upstream-token/],
      ["client-credentials", /--token-endpoint/],
      ["sigv4", /--aws-region/],
      ["gcp-id-token", /--token-audience/],
    ] as const) {
      assert.throws(
        () => identityOf(["--upstream-identity", kind]),
        (error) => error instanceof UsageError && missing.test(error.message),
      );
    }
  });

  test("cannot be a signature and a fixed header", () => {
    const flags = ["--upstream-identity", "sigv4", "--aws-region", "a", "--header", "Authorization=Basic x"];
    assert.throws(() => identityOf(flags), /contradict/);
  });
});
