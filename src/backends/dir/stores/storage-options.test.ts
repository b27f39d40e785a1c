import assert from "node:assert/strict";
import { test } from "vitest";
import { toConfig } from "./s3/client.ts";
import { createOptionReader } from "./storage-options.ts";

test("an option is found with or without its prefix, in any case", () => {
  const read = createOptionReader({ AWS_Region: "a", endpoint: "b", aws_session_token: "c" }, ["aws_"]);
  assert.deepEqual([read.text("region"), read.text("endpoint_url", "endpoint")], ["a", "b"]);
  assert.equal(read.text("token", "session_token"), "c");
  assert.equal(read.text("none"), undefined);
});

test("flags, durations and counts are understood, and what is not is refused without its value", () => {
  const read = createOptionReader(
    { on: "TRUE", off: "0", long: "2 minutes", short: "500ms", count: "3", odd: "s3cret" },
    [],
  );
  assert.deepEqual([read.flag("on"), read.flag("off"), read.flag("none")], [true, false, undefined]);
  assert.deepEqual([read.duration("long"), read.duration("short"), read.integer("count")], [120_000, 500, 3]);
  for (const kind of ["flag", "duration", "integer"] as const) {
    assert.throws(
      () => read[kind]("odd"),
      (error: Error) => /option odd must be/.test(error.message) && !error.message.includes("s3cret"),
    );
  }
});

test("S3 is reached as the engine reaches it", () => {
  const plain = toConfig({ aws_region: "eu-central-1" });
  assert.deepEqual([plain.region, plain.forcePathStyle, plain.endpoint], ["eu-central-1", false, undefined]);
  assert.equal(plain.credentials, undefined);
  const minio = toConfig({
    aws_endpoint: "http://minio:9000",
    allow_http: "true",
    access_key_id: "a",
    aws_secret_access_key: "b",
  });
  assert.deepEqual([minio.region, minio.forcePathStyle], ["us-east-1", true]);
  assert.deepEqual(minio.credentials, { accessKeyId: "a", secretAccessKey: "b" });
  assert.equal(
    toConfig({ endpoint: "https://b.example.com", aws_virtual_hosted_style_request: "true" }).forcePathStyle,
    false,
  );
});

test("an endpoint in clear text has to be allowed, and half of a key is none", () => {
  assert.throws(() => toConfig({ aws_endpoint: "http://minio:9000" }), /allow_http=true/);
  assert.throws(() => toConfig({ aws_access_key_id: "only this" }), /both aws_access_key_id/);
});
