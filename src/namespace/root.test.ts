import { expect, test } from "vitest";
import { isRoot } from "./root.ts";

test.each([
  "./lance-data",
  "/var/lance",
  "C:\\lance",
  "C:/lance",
  "a:b",
  "file:///var/lance",
  "s3://bucket",
  "gs://bucket/prefix",
  "az://container/a/b",
])("%s names a root", (text) => {
  expect(isRoot(text)).toBe(true);
});

test.each([
  "s3:/bucket/prefix",
  "s3:bucket",
  "S3://bucket",
  "s3://",
  "s3:///prefix",
  "s4://bucket",
  "s3://bucket/a?b",
  "file:///a?b",
  "http://x",
  "file:/var/lance",
  "://x",
  "x y://z",
])("%s names no root, and no directory of that name is created", (text) => {
  expect(isRoot(text)).toBe(false);
});
