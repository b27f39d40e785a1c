import { existsSync } from "node:fs";
import { join } from "node:path";
import { assert, expect, test } from "vitest";
import { type FolderRule, IMPORT_RULES } from "../../scripts/imports/rules.ts";
import { wrongImports, wrongImportsIn } from "../../scripts/imports/wrong-imports.ts";

const src = join(import.meta.dirname, "../../src");

test("the sources import only what the rules allow", () => {
  expect(wrongImportsIn(src, IMPORT_RULES)).toEqual([]);
});

test("every folder and part of the rules exists", () => {
  for (const [folder, { may, parts = [] }] of Object.entries(IMPORT_RULES))
    for (const named of [folder, ...may, ...parts.map((part) => `${folder}/${part}`)])
      assert(existsSync(join(src, named.replace(/\*$/, ""))), `${folder}: ${named}`);
});

const rules: Readonly<Record<string, FolderRule>> = {
  runtime: { may: [] },
  inner: { may: ["lone.ts"] },
  outer: { may: ["inner/*"], parts: ["first", "*", "last"] },
  "outer/apart": { may: ["outer/first"] },
  page: { may: ["*"], isForBrowsers: true },
};

test.each([
  ["inner/a.ts", 'import { b } from "../outer/b.ts";', "outer/b.ts"],
  ["inner/a.ts", 'import type { b } from "../outer/b.ts";', "outer/b.ts"],
  ["inner/a.ts", 'export * from "../outer/b.ts";', "outer/b.ts"],
  ["inner/a.ts", 'export { b } from "../outer/b.ts";', "outer/b.ts"],
  ["inner/a.ts", 'const b = await import("../outer/b.ts");', "outer/b.ts"],
  ["inner/a.ts", 'using a = open();\nimport "../outer/b.ts";', "outer/b.ts"],
  ["runtime/a.ts", 'import "../inner/b.ts";', "inner/b.ts"],
  ["outer/first/a.ts", 'import "../b.ts";', "outer/b.ts"],
  ["outer/a.ts", 'import "./last/b.ts";', "outer/last/b.ts"],
  ["outer/a.ts", 'import "../inner/deep/b.ts";', "inner/deep/b.ts"],
  ["outer/a.ts", 'import "./apart/b.ts";', "outer/apart/b.ts"],
  ["outer/apart/a.ts", 'import "../b.ts";', "outer/b.ts"],
])("%s must not contain %s", (file, text, target) => {
  expect(wrongImports(file, text, rules)).toEqual([`${file} must not import ${target}`]);
});

test.each([
  ["inner/a.ts", 'import "../lone.ts"; import "../runtime/b.ts"; import "node:fs"; import "x";'],
  ["outer/last/a.ts", 'import "../b.ts"; import "../first/b.ts"; import "../../inner/b.ts";'],
  ["outer/apart/a.ts", 'import "../first/b.ts"; import "./b.ts";'],
  ["page/a.tsx", 'import "../outer/b.ts"; const text = <p>import "node:fs";</p>;'],
])("%s may contain %s", (file, text) => {
  expect(wrongImports(file, text, rules)).toEqual([]);
});

test("code for browsers imports no module of Node", () => {
  expect(wrongImports("page/a.ts", 'import "node:fs";', rules)).toEqual([
    "page/a.ts runs in browsers and must not import node:fs",
  ]);
});

test.each([
  ['import Pool from "undici/lib/dispatcher/pool.js";', "undici/lib/dispatcher/pool.js"],
  ['import type { x } from "@grpc/grpc-js/build/src/call.js";', "@grpc/grpc-js/build/src/call.js"],
  ['const x = await import("fastify/lib/reply.js");', "fastify/lib/reply.js"],
  ["const { buffer } = stream._readableState;", "_readableState"],
  ["socket?._handle.readStop();", "_handle"],
])("only the folder for internals may contain %s", (text, what) => {
  const message = `inner/a.ts reaches into ${what}, which only runtime/internals may`;
  expect(wrongImports("inner/a.ts", text, rules)).toEqual([message]);
  expect(wrongImports("runtime/internals/a.ts", text, rules)).toEqual([]);
});

test("modules that a package exports are no internals", () => {
  const text =
    'import "undici"; import "@bufbuild/protobuf/wkt"; import "preact/hooks"; call(this.#_own, _own.b);';
  expect(wrongImports("inner/a.ts", text, rules)).toEqual([]);
});

test("a single file finds files of the package by its own place", () => {
  const text = 'new URL("../a", import.meta.url); createRequire(import.meta.url);';
  expect(wrongImports("inner/a.ts", text, rules)).toEqual([
    "inner/a.ts has import.meta.url; files are found by runtime/package-files.ts",
  ]);
  expect(wrongImports("runtime/package-files.ts", text, rules)).toEqual([]);
});

test("a file in a folder without a rule is refused", () => {
  expect(wrongImports("new/a.ts", "", rules)).toEqual(["new/a.ts is in a folder without a rule"]);
});
