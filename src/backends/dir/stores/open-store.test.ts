import assert from "node:assert/strict";
import { test } from "vitest";
import { openStore } from "./open-store.ts";

test("a root is a path or a URI of a known scheme", async () => {
  assert.equal((await openStore("some/where", {})).root, "some/where");
  assert.equal((await openStore("file:///some/wh%20ere", {})).root, "/some/wh ere");
  for (const root of ["ftp://a/b", "s3://", "s3:///b", "s3://a/b?c", "s3://a/../b", "S4://a", "s3:/a"]) {
    await assert.rejects(openStore(root, {}), /the root must be a path, or a URI|is no plain URI/, root);
  }
});

test("a root in a bucket has a key, with or without slashes around it", async () => {
  const options = { aws_region: "us-east-1" };
  for (const [root, key] of [
    ["s3://bucket", ""],
    ["s3://bucket/", ""],
    ["s3://bucket/a//b%20c/", "a/b c"],
  ] as const) {
    const opened = await openStore(root, options);
    assert.equal(opened.root, key);
    assert.equal(opened.store.uriOf("a/b c%"), "s3://bucket/a/b%20c%25");
    assert.equal(opened.engineOptions["aws_region"], "us-east-1");
  }
});

test("a service that lacks what it needs says so", async () => {
  await assert.rejects(openStore("az://container/p", {}), /azure_storage_account_name/);
  const azure = { azure_storage_account_name: "a", azure_storage_endpoint: "https://[::1]:10000" };
  await assert.rejects(openStore("az://container/p", azure), /endpoint needs a name or an IPv4 address/);
  await assert.rejects(openStore("gs://bucket/p", { google_service_account_key: "{" }), /JSON of a key/);
});
