import assert from "node:assert/strict";
import { test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { allowedLocation } from "./import-source.ts";

const LOCATIONS = ["/data", "/data/raw", "s3://bucket/raw"];

test.each([
  ["/data/a.parquet", "/data"],
  ["/data", "/data"],
  ["/data/raw/2026/*.parquet", "/data/raw"],
  ["s3://bucket/raw/**/part-*.parquet", "s3://bucket/raw"],
])("finds the closest location that allows %s", (source, location) => {
  assert.equal(allowedLocation(LOCATIONS, source), location);
});

test.each([
  "/database/a.parquet",
  "/",
  "/data*/a.parquet",
  "/etc/passwd",
  "s3://bucket/rawer/a.parquet",
  "s3://other/raw/a.parquet",
  "s3://bucket/*",
])("refuses %s outside of all locations", (source) => {
  assert.throws(
    () => allowedLocation(LOCATIONS, source),
    failsWith(source === "/" ? "InvalidInput" : "PermissionDenied"),
  );
});

test.each([
  "data/a.parquet",
  "/data/../etc/passwd",
  "/data/./a",
  "/data//a",
  "/data/raw/",
  "s3://bucket/raw/%2e%2e/a",
  "s3://bucket/raw/a?versionId=1",
  "gs://bucket/raw/a.parquet",
  "file:///data/a.parquet",
  "/data/a\nb",
])("refuses %j, which names no place or names it in another way", (source) => {
  assert.throws(() => allowedLocation(LOCATIONS, source), failsWith("InvalidInput"));
});
