import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { beginCall } from "../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import type { Catalog, NamesPage, PageRequest } from "./catalog.ts";
import { MAX_PAGES } from "./paging.ts";
import { createTableWalk } from "./walk-tables.ts";

const call = beginCall(LanceNamespaceService.method.listAllTables);

/** A catalog in memory, whose pages have two names, whatever size is requested. */
function catalogOf(tables: (id: Identifier) => readonly string[], children: typeof tables) {
  const requests: string[] = [];
  const pageOf = (names: readonly string[], { token }: PageRequest): NamesPage => {
    const start = Number(token ?? 0);
    const end = start + 2;
    return { names: names.slice(start, end), next: end < names.length ? String(end) : undefined };
  };
  const catalog: Catalog = {
    name: "stand-in",
    depths: [1, Number.POSITIVE_INFINITY],
    tableDepths: [1, Number.POSITIVE_INFINITY],
    async listNamespaces(id: Identifier, page: PageRequest) {
      requests.push(`namespaces of ${id.join(".")}`);
      return pageOf(children(id), page);
    },
    async listTables(id: Identifier, page: PageRequest) {
      requests.push(`tables of ${id.join(".")}`);
      return pageOf(tables(id), page);
    },
  } as Partial<Catalog> as Catalog;
  return { catalog, requests };
}

/** Returns the pages of a walk. */
async function pagesOf(walk: ReturnType<typeof createTableWalk>, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  let pageToken: string | undefined;
  do {
    const page = await walk({ limit, pageToken }, call);
    pages.push(page.names);
    pageToken = page.pageToken;
  } while (pageToken !== undefined);
  return pages;
}

describe("the walk through the tables of a foreign catalog", () => {
  const TREE: Readonly<Record<string, readonly string[]>> = {
    "": ["c", "b", "a"],
    b: ["y", "x"],
    "b.x": ["deep"],
  };
  const children = (id: Identifier) => TREE[id.join(".")] ?? [];
  const ALL = ["b$t3", "b$t1", "b$t2", "b$x$t3", "b$x$deep$t3", "b$y$t3", "c$t3", "a$t3"];
  const tables = (id: Identifier) => (id.join(".") === "b" ? ["t3", "t1", "t2"] : ["t3"]);

  it("lists each table once with every limit, page after page", async () => {
    const { catalog } = catalogOf(tables, children);
    const walk = createTableWalk(catalog, []);
    const { names } = await walk({}, call);
    assert.deepEqual(names.toSorted(), ALL.toSorted());
    for (let limit = 1; limit <= ALL.length + 1; limit += 1) {
      const pages = await pagesOf(walk, limit);
      assert.deepEqual(pages.flat(), names);
      assert.ok(pages.slice(0, -2).every((page) => page.length === limit));
    }
  });

  it("goes on after a namespace that is dropped between two pages", async () => {
    let isThere = true;
    const { catalog } = catalogOf((id) => {
      if (isThere || id[0] !== "b") return tables(id);
      throw new LanceError("NamespaceNotFound", "dropped");
    }, children);
    const walk = createTableWalk(catalog, []);
    const first = await walk({ limit: 2 }, call);
    assert.deepEqual(first.names, ["b$t1", "b$t3"]);
    isThere = false;
    const second = await walk({ pageToken: first.pageToken }, call);
    assert.deepEqual(second.names, ["c$t3", "a$t3"]);
  });

  it("passes over namespaces that are denied, and fails where its root is", async () => {
    const { catalog } = catalogOf((id) => {
      if (id.at(-1) !== "b") return tables(id);
      throw new LanceError("PermissionDenied", "not yours");
    }, children);
    assert.deepEqual((await createTableWalk(catalog, [])({}, call)).names, ["c$t3", "a$t3"]);
    await assert.rejects(createTableWalk(catalog, ["b"])({}, call), /not yours/);
  });

  it("ends a page after a bounded number of requests, and goes on from there", async () => {
    const spaces = Array.from({ length: 3_000 }, (_, i) => `n${String(i).padStart(4, "0")}`);
    const { catalog, requests } = catalogOf(
      ([name]) => (name === "n2999" ? ["t"] : []),
      (id) => (id.length === 0 ? spaces : []),
    );
    const walk = createTableWalk(catalog, []);
    const pages: string[][] = [];
    let pageToken: string | undefined;
    do {
      requests.length = 0;
      const page = await walk({ pageToken }, call);
      assert.ok(requests.length <= MAX_PAGES + 2, `${requests.length} requests`);
      pages.push(page.names);
      pageToken = page.pageToken;
    } while (pageToken !== undefined);
    assert.deepEqual(pages.flat(), ["n2999$t"]);
    assert.ok(pages.length < 10, `${pages.length} pages`);
  });

  it("ends in a catalog whose namespaces have themselves in them", async () => {
    const { catalog } = catalogOf(
      () => ["t"],
      () => ["again"],
    );
    const { names } = await createTableWalk(catalog, [])({}, call);
    assert.equal(names.length, 31);
  });

  it("refuses tokens with places that no walk has", async () => {
    const { catalog, requests } = catalogOf(tables, children);
    const walk = createTableWalk(catalog, []);
    for (const parts of [
      [null],
      [null, "a/b", null, null],
      [null, null, null, null],
      [1, 2],
      Array(200).fill("a"),
    ]) {
      const pageToken = Buffer.from(JSON.stringify(parts)).toString("base64url");
      await assert.rejects(walk({ pageToken }, call), /page_token/);
    }
    assert.deepEqual(requests, []);
  });
});
