import assert from "node:assert/strict";
import { test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { checkIndexFields } from "./index-fields.ts";
import { indexKind } from "./index-kinds.ts";

test("the stop words of a full-text index have at most 65,536 characters, with one more for each", () => {
  const check = (customStopWords: string[]) => checkIndexFields(indexKind("FTS"), { customStopWords });
  const most = Array.from({ length: 32_768 }, () => "a");
  assert.deepEqual(check(most).customStopWords, most);
  assert.throws(() => check([...most, ""]), failsWith("InvalidInput"));
});

test("a tokenizer with a language model names a directory of models, and no other", () => {
  const check = (baseTokenizer: string) =>
    checkIndexFields(indexKind("FTS"), { baseTokenizer, customStopWords: [] }).baseTokenizer;
  for (const name of ["jieba", "jieba/default", "lindera/ipadic", "lindera/ko-dic_2.1"])
    assert.equal(check(name), name);
  for (const name of [
    "lindera",
    "jieba/",
    "jieba/..",
    "jieba/../x",
    "jieba/a/b",
    "jieba//etc",
    "/etc",
    "other/x",
  ])
    assert.throws(() => check(name), failsWith("InvalidInput"), name);
});
