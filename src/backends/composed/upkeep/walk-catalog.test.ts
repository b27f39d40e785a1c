import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { expect, test } from "vitest";
import { ListNamespacesResponseSchema } from "../../../gen/lance/namespace/v1/namespace_pb.ts";
import { ListTablesResponseSchema } from "../../../gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { walkCatalog } from "./walk-catalog.ts";

/** Walks through a catalog, and returns its tables, the number of its turns, what was logged, and where the next walk begins. */
async function walk(
  operations: Backend["operations"],
  { signal = new AbortController().signal, after }: { signal?: AbortSignal; after?: number } = {},
) {
  const tables: string[] = [];
  const logged: string[] = [];
  let turns = 0;
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line).msg) });
  const turn = async () => {
    turns += 1;
  };
  const walked = walkCatalog({ operations }, { log, turn, signal, after });
  for (;;) {
    const { done, value } = await walked.next();
    if (done) return { tables, turns, logged, next: value };
    tables.push(value.join("$"));
  }
}

test("a walk follows pages and namespaces, each request in its turn", async () => {
  const { tables, turns } = await walk({
    async listTables({ pageToken }, { id }) {
      const at = Number(pageToken ?? 0);
      const more = at < 2 ? { pageToken: String(at + 1) } : {};
      return create(ListTablesResponseSchema, { tables: [`t${at}`], ...(id.length === 0 ? {} : more) });
    },
    listNamespaces: async (_, { id }) =>
      create(ListNamespacesResponseSchema, { namespaces: id.length < 2 ? ["n"] : [] }),
  });
  assert.deepEqual(tables, ["t0", "n$t0", "n$t1", "n$t2", "n$n$t0", "n$n$t1", "n$n$t2"]);
  assert.equal(turns, 10);
});

test("a walk ends a listing that repeats its token, and says so", async () => {
  const { tables, logged } = await walk({
    listTables: async () => create(ListTablesResponseSchema, { tables: ["t"], pageToken: "again" }),
    listNamespaces: async () => create(ListNamespacesResponseSchema),
  });
  assert.deepEqual(tables, ["t", "t"]);
  assert.match(String(logged), /repeats its page token/);
});

test("a walk ends with namespaces that contain themselves", async () => {
  const { tables } = await walk({
    listTables: async (_, { id }) =>
      create(ListTablesResponseSchema, { tables: id.length === 32 ? ["t"] : [] }),
    listNamespaces: async () => create(ListNamespacesResponseSchema, { namespaces: ["n"] }),
  });
  assert.equal(tables.length, 1);
});

test("a walk ends where namespaces or their tables have no end, and says so", async () => {
  const fresh = (pageToken = "0") => ({ pageToken: String(Number(pageToken) + 1) });
  const empty = create(ListTablesResponseSchema);
  const many = Array.from({ length: 1_000 }, (_, at) => String(at));
  const kinds: Record<string, Backend["operations"]> = {
    pages: {
      listTables: async () => empty,
      listNamespaces: async ({ pageToken }) => create(ListNamespacesResponseSchema, fresh(pageToken)),
    },
    "namespaces of namespaces": {
      listTables: async () => empty,
      listNamespaces: async () => create(ListNamespacesResponseSchema, { namespaces: ["a", "b"] }),
    },
    tables: {
      listTables: async ({ pageToken }) =>
        create(ListTablesResponseSchema, { tables: many, ...fresh(pageToken) }),
      listNamespaces: async () => create(ListNamespacesResponseSchema),
    },
  };
  for (const [kind, operations] of Object.entries(kinds)) {
    const { tables, turns, logged } = await walk(operations);
    assert.equal(tables.length + turns, 100_000, kind);
    assert.match(String(logged), /more than upkeep looks at in a walk/, kind);
    assert.equal(logged.length, 1);
  }
});

test("a walk leaves out namespaces that are denied, and fails where the root is", async () => {
  const denied = (isDenied: (depth: number) => boolean) =>
    walk({
      async listTables(_, { id }) {
        if (isDenied(id.length)) throw new LanceError("PermissionDenied", "not yours");
        return create(ListTablesResponseSchema, { tables: ["t"] });
      },
      listNamespaces: async (_, { id }) =>
        create(ListNamespacesResponseSchema, { namespaces: id.length === 0 ? ["n"] : [] }),
    });
  assert.deepEqual((await denied((depth) => depth === 1)).tables, ["t"]);
  await expect(denied(() => true)).rejects.toThrow("not yours");
  await expect(walk({})).rejects.toThrow("does not list its tables");
});

test("a walk leaves out a namespace that cannot be listed, and ends where several in succession cannot", async () => {
  const broken = (isBroken: (name: string) => boolean) =>
    walk({
      async listTables(_, { id }) {
        if (isBroken(id[0] ?? "")) throw new LanceError("Internal", "broken");
        return create(ListTablesResponseSchema, { tables: ["t"] });
      },
      listNamespaces: async (_, { id }) =>
        create(ListNamespacesResponseSchema, { namespaces: id.length === 0 ? [..."abcdefgh"] : [] }),
    });
  const { tables, logged } = await broken((name) => name === "a" || name === "c");
  assert.deepEqual(tables, ["t", ...[..."bdefgh"].map((name) => `${name}$t`)]);
  assert.match(String(logged), /does not list a namespace/);
  assert.equal(logged.length, 2);
  await expect(broken((name) => name !== "")).rejects.toThrow("broken");
});

test("a walk ends with its signal, between pages and while the upstream does not answer", async () => {
  for (const answers of [true, false]) {
    const stop = new AbortController();
    let pages = 0;
    const walked = walk(
      {
        async listTables() {
          pages += 1;
          if (pages === 3) stop.abort(new Error("the gateway closes"));
          if (pages === 3 && !answers) await new Promise(() => {});
          return create(ListTablesResponseSchema, { pageToken: String(pages) });
        },
        listNamespaces: async () => create(ListNamespacesResponseSchema),
      },
      { signal: stop.signal },
    );
    await expect(walked).rejects.toThrow("the gateway closes");
    assert.equal(pages, 3);
  }
});

test("a walk that ended at its maximum is followed by one that goes on behind its tables", async () => {
  const pages = Array.from({ length: 150 }, (_, page) =>
    Array.from({ length: 1_000 }, (_, at) => `${page * 1_000 + at}`),
  );
  const operations: Backend["operations"] = {
    listTables: async ({ pageToken = "0" }) =>
      create(ListTablesResponseSchema, {
        tables: pages[Number(pageToken)] ?? [],
        ...(Number(pageToken) < pages.length - 1 && { pageToken: String(Number(pageToken) + 1) }),
      }),
    listNamespaces: async () => create(ListNamespacesResponseSchema),
  };
  const first = await walk(operations);
  assert.match(String(first.logged), /the next walk goes on there/);
  assert.equal(first.next, first.tables.length);
  const second = await walk(operations, { after: first.next });
  assert.deepEqual([...first.tables, ...second.tables], pages.flat());
  assert.deepEqual([second.next, second.logged], [0, []]);
});
