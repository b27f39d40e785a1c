import assert from "node:assert/strict";
import { test } from "vitest";
import { parseTemplate } from "../namespace/template.ts";
import { createTrie } from "./trie.ts";

function trieOf(...routes: readonly string[]) {
  const trie = createTrie<string>();
  for (const route of routes) {
    const [method = "", path = ""] = route.split(" ");
    trie.add(method, parseTemplate(path), route);
  }
  return trie;
}

test("a literal goes before a wildcard, and a dead end goes back to the wildcard", () => {
  const trie = trieOf("POST /t/version/batch", "POST /t/{id}/create", "GET /t/{id}/batch");
  assert.equal(trie.match("POST", "/t/version/batch").target, "POST /t/version/batch");
  assert.equal(trie.match("POST", "/t/version/create").target, "POST /t/{id}/create");
  assert.equal(trie.match("GET", "/t/version/batch").target, "GET /t/{id}/batch");
});

test("a known path tells its methods, an unknown one none", () => {
  const trie = trieOf("POST /t/{id}", "GET /t/x");
  assert.deepEqual(trie.match("PUT", "/t/x"), { target: undefined, allowed: ["GET", "POST"] });
  assert.deepEqual(trie.match("PUT", "/u/x"), { target: undefined, allowed: [] });
  assert.deepEqual(trie.match("GET", "/"), { target: undefined, allowed: [] });
});

test("an empty segment inside a path matches nothing", () => {
  assert.equal(trieOf("GET /t/{id}/list").match("GET", "/t//list").target, undefined);
});

test("** takes the rest of a path, and a verb its end", () => {
  const trie = trieOf("GET /f/{path=**}", "POST /f/{id}:stop", "POST /f/{id}");
  assert.equal(trie.match("GET", "/f/a/b/c").target, "GET /f/{path=**}");
  assert.equal(trie.match("GET", "/f").target, "GET /f/{path=**}");
  const stop = trie.match("POST", "/f/a:b:stop");
  assert.ok(stop.target === "POST /f/{id}:stop");
  assert.deepEqual(stop.segments, ["f", "a:b"]);
  assert.equal(trie.match("POST", "/f/a:go").target, "POST /f/{id}");
});

test("two equal routes are refused", () => {
  assert.throws(() => trieOf("GET /t/{id}", "GET /t/{name}"), /second route GET \/t\/\{name\}/);
});
