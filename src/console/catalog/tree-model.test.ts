import { expect, test } from "vitest";
import { createTreeModel, type Lister, type TreeRow, visibleRange } from "./tree-model.ts";

/** A catalog of namespaces and tables by their paths, in pages of two names. */
function catalogOf(paths: readonly string[]) {
  const calls: string[] = [];
  function page(found: readonly string[], token: string | undefined) {
    const start = Number(token ?? 0);
    const next = start + 2 < found.length ? String(start + 2) : undefined;
    return { names: found.slice(start, start + 2), next };
  }
  const below = (id: readonly string[], isNamespace: boolean) => {
    const start = id.map((name) => `${name}/`).join("");
    const names = paths
      .filter((path) => path.startsWith(start) && path !== start)
      .map((path) => path.slice(start.length))
      .filter((rest) => rest.includes("/") === isNamespace)
      .map((rest) => rest.split("/")[0] as string);
    return [...new Set(names)];
  };
  const lister: Lister = {
    async namespaces(id, token) {
      calls.push(`namespaces ${id.join("/")} ${token ?? 0}`);
      return page(below(id, true), token);
    },
    async tables(id, token) {
      calls.push(`tables ${id.join("/")} ${token ?? 0}`);
      return page(below(id, false), token);
    },
  };
  const model = createTreeModel(lister, () => {});
  return { model, calls };
}

const text = ({ kind, name, level }: TreeRow) =>
  `${"  ".repeat(level - 1)}${kind === "namespace" ? "+" : ""}${name}`;

test("the root shows its namespaces, and a page of its tables", async () => {
  const { model } = catalogOf(["a/", "b/", "c/t", "t1", "t2", "t3"]);
  await expect.poll(() => model.rows().map(text)).toEqual(["+a", "+b", "+c", "t1", "t2", "More tables…"]);
});

test("a namespace is listed when it is opened, and not before", async () => {
  const { model, calls } = catalogOf(["a/t", "b/"]);
  await expect.poll(() => model.rows().length).toBe(2);
  expect(calls.filter((call) => / [ab] /.test(call))).toEqual([]);
  model.toggle(["a"]);
  await expect.poll(() => model.rows().map(text)).toEqual(["+a", "  t", "+b"]);
  model.toggle(["a"]);
  expect(model.rows().map(text)).toEqual(["+a", "+b"]);
});

test("an empty namespace says so", async () => {
  const { model } = catalogOf(["a/"]);
  await expect.poll(() => model.rows().length).toBe(1);
  model.toggle(["a"]);
  await expect.poll(() => model.rows().map(text)).toEqual(["+a", "  Nothing here yet"]);
});

test("a search loads all pages and keeps the names that begin with its text", async () => {
  const { model } = catalogOf(["t1", "t2", "other", "T10", "x"]);
  await expect.poll(() => model.rows().length).toBe(3);
  model.search("t1");
  await expect.poll(() => model.rows().map(text)).toEqual(["t1", "T10"]);
  model.search("");
  expect(model.rows()).toHaveLength(5);
});

test("the list of lines stays the same while nothing changes", async () => {
  const { model } = catalogOf(["t"]);
  await expect.poll(() => model.rows().map(text)).toEqual(["t"]);
  expect(model.rows()).toBe(model.rows());
});

test("a refresh shows what appeared, and keeps open namespaces open", async () => {
  const paths = ["a/t"];
  const { model } = catalogOf(paths);
  await expect.poll(() => model.rows().length).toBe(1);
  model.toggle(["a"]);
  await expect.poll(() => model.rows().length).toBe(2);
  paths.push("b/");
  model.refresh([]);
  await expect.poll(() => model.rows().map(text)).toEqual(["+a", "  t", "+b"]);
});

test("a failure is a line from which the page is asked for again", async () => {
  let works = false;
  const lister: Lister = {
    async namespaces() {
      if (!works) throw new Error("It broke.");
      return { names: ["a"], next: undefined };
    },
    tables: async () => ({ names: [], next: undefined }),
  };
  const model = createTreeModel(lister, () => {});
  await expect.poll(() => model.rows().map(text)).toEqual(["It broke. Try again."]);
  works = true;
  model.loadMore([]);
  await expect.poll(() => model.rows().map(text)).toEqual(["+a"]);
});

test("an object is revealed by opening what leads to it", async () => {
  const { model } = catalogOf(["a/b/t", "x"]);
  await expect.poll(() => model.rows().length).toBe(2);
  model.reveal(["a", "t"]);
  await expect.poll(() => model.rows().map(text)).toEqual(["+a", "  +b", "x"]);
});

test("an object is revealed also before anything is loaded", async () => {
  const { model } = catalogOf(["a/b/t", "x"]);
  model.reveal(["a", "b", "t"]);
  await expect.poll(() => model.rows().map(text)).toEqual(["+a", "  +b", "    t", "x"]);
});

test("what others create and drop appears when the open namespaces are read again, and the rest stays as it is", async () => {
  const paths = ["a/b/t", "c/", "t1", "t2", "t3"];
  const { model, calls } = catalogOf(paths);
  await expect.poll(() => model.rows().length).toBe(5);
  model.toggle(["a"]);
  model.loadMore([]);
  await expect.poll(() => model.rows().map(text)).toEqual(["+a", "  +b", "+c", "t1", "t2", "t3"]);
  model.toggle(["a", "b"]);
  await expect.poll(() => model.rows().map(text)).toContain("    t");
  calls.length = 0;
  paths.splice(0, paths.length, "a/b/t", "a/b/u", "d/", "t2", "t3", "t4", "t5");
  model.refreshOpen();
  expect(model.rows().map(text)).toContain("+c");
  await expect
    .poll(() => model.rows().map(text))
    .toEqual(["+a", "  +b", "    t", "    u", "+d", "t2", "t3", "t4", "t5"]);
  expect(calls.filter((call) => call.includes(" d "))).toEqual([]);
});

test("only lines near the visible part are drawn, however many there are", () => {
  expect(visibleRange(0, 280, 28, 100_000)).toEqual({ first: 0, end: 20 });
  expect(visibleRange(28_000, 280, 28, 100_000)).toEqual({ first: 990, end: 1020 });
});

test("a list that has become shorter than the place it was scrolled to draws nothing beyond its end", () => {
  expect(visibleRange(28_000, 280, 28, 5)).toEqual({ first: 5, end: 5 });
});
