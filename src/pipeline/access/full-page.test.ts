import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { fullPage, type Source } from "./full-page.ts";

/** Creates a listing of names; those with a capital letter are hidden. A token is the name before the page. */
function listing(text: string, { maxPage = 1_000, ignoresLimits = false } = {}) {
  const names = text === "" ? [] : text.split(" ");
  const asked: (number | undefined)[] = [];
  const source: Source = async (token = "", limit = 0) => {
    asked.push(limit);
    const start = token === "" ? 0 : names.indexOf(token) + 1;
    const size = limit > 0 && !ignoresLimits ? Math.min(limit, maxPage) : maxPage;
    const entries = names.slice(start, start + size);
    const more = start + size < names.length;
    return {
      entries,
      visible: entries.map((name) => name === name.toLowerCase()),
      token: more ? (entries.at(-1) ?? token) : undefined,
    };
  };
  return { source, asked };
}

/** Returns all pages as texts. */
async function pagesOf(source: Source, limit?: number, plain = false): Promise<string[]> {
  const pages: string[] = [];
  for (let start: string | undefined; ; ) {
    const page = await fullPage(source, { start, limit, plain });
    pages.push(page.entries.join(" "));
    if (page.token === undefined) return pages;
    assert.equal(page.token, page.entries.at(-1), "a token comes directly after a visible entry");
    start = page.token;
  }
}

describe("pages of visible entries", () => {
  for (const [text, limit, pages] of [
    ["a b c d e", 2, ["a b", "c d", "e"]],
    ["a X Y b Z c", 2, ["a b", "c"]],
    ["X Y a b", 2, ["a b"]],
    ["a b X Y", 2, ["a b"]],
    ["a b X c Y", 2, ["a b", "c"]],
    ["X Y Z", 1, [""]],
    ["", 5, [""]],
    ["a X", 1, ["a"]],
    ["X a Y b Z c X", 1, ["a", "b", "c"]],
    ["a b c", undefined, ["a b c"]],
  ] as const) {
    it(`of "${text}" by ${limit} are ${JSON.stringify(pages)}`, async () => {
      assert.deepEqual(await pagesOf(listing(text).source, limit), pages);
      assert.deepEqual(await pagesOf(listing(text).source, limit, true), pages);
    });
  }

  it("are as long as the pages that the backend chooses", async () => {
    const { source } = listing("a X b Y c d e", { maxPage: 2 });
    assert.deepEqual(await pagesOf(source), ["a b", "c d", "e"]);
    assert.deepEqual(await pagesOf(source, 100), ["a b", "c d", "e"]);
    assert.deepEqual(await pagesOf(source, 1, true), ["a", "b", "c", "d", "e"]);
    assert.deepEqual(await pagesOf(source, 100, true), ["a b", "c d", "e"]);
  });

  it("take a single call where tokens are names and few entries are hidden", async () => {
    const names = Array.from({ length: 500 }, (_, i) => (i % 20 === 0 ? `X${i}` : `x${i}`));
    const { source, asked } = listing(names.join(" "));
    const page = await fullPage(source, { start: undefined, limit: 100, plain: true });
    assert.deepEqual([page.entries.length, page.token], [100, page.entries.at(-1)]);
    assert.equal(asked.length, 1);
  });

  it("have the backend's own tokens where its tokens are not the names that arrive here", async () => {
    const { source } = listing("a X b c d");
    const renamed: Source = async (token, limit) => {
      const page = await source(token, limit);
      return { ...page, entries: page.entries.map((name) => `${name}!`) };
    };
    const page = await fullPage(renamed, { start: undefined, limit: 1, plain: true });
    assert.deepEqual(page, { entries: ["a!"], token: "a" });
  });

  it("take few calls when nearly everything is hidden", async () => {
    const hidden = Array.from({ length: 3_000 }, (_, i) => `X${i}`).join(" ");
    const { source, asked } = listing(`${hidden} a`);
    assert.deepEqual(await pagesOf(source, 1), ["a"]);
    assert.ok(asked.length < 8, `${asked.length} calls`);
  });

  it("end when a backend ignores limits", async () => {
    const { source } = listing("a X b Y c Z d", { maxPage: 3, ignoresLimits: true });
    const first = await fullPage(source, { start: undefined, limit: 1, plain: false });
    const second = await fullPage(source, { start: first.token, limit: 1, plain: false });
    assert.deepEqual([first.entries, second.entries], [["a", "b", "c"], ["d"]]);
  });
});
