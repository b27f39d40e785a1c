import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** A page of names. */
export interface NamePage {
  readonly names: readonly string[];
  /** Token of the next page; undefined for the last one. */
  readonly next: string | undefined;
}

type Id = readonly string[];

/** Lists what is directly in a namespace, page by page. */
export interface Lister {
  namespaces(id: Id, token: string | undefined): Promise<NamePage>;
  tables(id: Id, token: string | undefined): Promise<NamePage>;
}

/** A visible line of the tree. */
export interface TreeRow {
  readonly kind: "namespace" | "table" | "more" | "note";
  readonly id: Id;
  /** The name, or the text of a note. */
  readonly name: string;
  /** Depth below the root, whose children have 1. */
  readonly level: number;
  /** Whether a namespace shows what is in it. */
  readonly isOpen?: boolean;
}

interface Folder {
  readonly id: Id;
  isOpen: boolean;
  /** Whether its first page was asked for. */
  isBegun: boolean;
  isLoading: boolean;
  error: string | undefined;
  readonly folders: Folder[];
  readonly tables: TreeRow[];
  /** What to list next; undefined if everything is here. */
  next: { readonly of: keyof Lister; readonly token: string | undefined } | undefined;
}

/** The catalog as a tree that loads what is looked at. */
export interface TreeModel {
  /** The visible lines, in the order of the gateway. The list stays the same until something changes. */
  rows(): readonly TreeRow[];
  /** Opens or closes a namespace. */
  toggle(id: Id): void;
  /** Opens the namespaces that lead to an object. */
  reveal(id: Id): void;
  /** Loads the next page of a namespace. */
  loadMore(id: Id): void;
  /** Shows the names that begin with a text only, and loads all pages of open namespaces. */
  search(prefix: string): void;
  /** Reads a namespace again, after a change of what is in it. */
  refresh(id: Id): void;
  /** Reads the open namespaces again, for changes that others have made. Lines stay until then, and after a failure. */
  refreshOpen(): void;
}

/**
 * Creates the tree and opens its root.
 *
 * @param onChange called when {@link TreeModel.rows} has changed.
 */
export function createTreeModel(lister: Lister, onChange: () => void): TreeModel {
  const root = folderOf([]);
  root.isOpen = true;
  let prefix = "";
  let revealed: Id = [];
  let rows: readonly TreeRow[] | undefined;

  function changed(): void {
    rows = undefined;
    onChange();
  }

  function find(id: Id): Folder | undefined {
    let folder: Folder | undefined = root;
    for (const [at] of id.entries()) {
      folder = folder?.folders.find((child) => child.id[at] === id[at]);
    }
    return folder;
  }

  async function load(folder: Folder): Promise<void> {
    const { next } = folder;
    if (next === undefined || folder.isLoading) return;
    folder.isBegun = true;
    folder.isLoading = true;
    folder.error = undefined;
    try {
      const page = await lister[next.of](folder.id, next.token);
      // A refresh in between begins anew.
      if (folder.next !== next) return;
      add(folder, next.of, page);
    } catch (thrown) {
      folder.error = thrown instanceof Error ? thrown.message : String(thrown);
    } finally {
      folder.isLoading = false;
      changed();
    }
    openRevealed(folder);
    if (folder.error === undefined && isWanted(folder)) void load(folder);
  }

  /** Opens the child on the way to the revealed object, once it is there. */
  function openRevealed(folder: Folder): void {
    const name = revealed[folder.id.length];
    const isOnWay =
      folder.id.every((each, at) => each === revealed[at]) && folder.id.length < revealed.length - 1;
    const child = isOnWay ? folder.folders.find(({ id }) => last(id) === name) : undefined;
    if (child === undefined) return;
    if (child.isOpen) openRevealed(child);
    else open(child);
  }

  /** Namespaces are few and come first; of the tables, a search needs all. */
  function isWanted({ next, isOpen, tables }: Folder): boolean {
    return isOpen && next !== undefined && (next.of === "namespaces" || prefix !== "" || tables.length === 0);
  }

  function open(folder: Folder): void {
    folder.isOpen = true;
    if (!folder.isBegun) void load(folder);
  }

  /** Lists a namespace again, as far as it is here; the namespaces in it keep their state. */
  async function reread(folder: Folder): Promise<void> {
    const { next, tables } = folder;
    const fresh = folderOf(folder.id);
    for (let part = fresh.next; part !== undefined; part = fresh.next) {
      if (part.token !== undefined && part.of === "tables" && fresh.tables.length >= tables.length) break;
      add(fresh, part.of, await lister[part.of](folder.id, part.token));
    }
    // It was loaded in between.
    if (folder.next !== next) return;
    const known = new Map(folder.folders.map((child) => [last(child.id), child]));
    const folders = fresh.folders.map((child) => known.get(last(child.id)) ?? child);
    Object.assign(folder, { folders, tables: fresh.tables, next: fresh.next });
    changed();
  }

  void load(root);
  return {
    rows() {
      rows ??= visible(root, prefix);
      return rows;
    },
    toggle(id) {
      const folder = find(id);
      if (folder === undefined) return;
      if (folder.isOpen) folder.isOpen = false;
      else open(folder);
      changed();
    },
    reveal(id) {
      revealed = id;
      openRevealed(root);
      changed();
    },
    loadMore(id) {
      const folder = find(id);
      if (folder !== undefined) void load(folder);
    },
    search(text) {
      prefix = text.trim().toLowerCase();
      for (const folder of openFolders(root)) if (isWanted(folder)) void load(folder);
      changed();
    },
    refreshOpen() {
      const listed = [...openFolders(root)].filter(
        ({ isLoading, error }) => !isLoading && error === undefined,
      );
      for (const folder of listed) void reread(folder).catch(() => {});
    },
    refresh(id) {
      const folder = find(id);
      if (folder === undefined) return;
      const open = new Set(folder.folders.filter(({ isOpen }) => isOpen).map((child) => child.id.at(-1)));
      Object.assign(folder, { ...folderOf(id), isOpen: folder.isOpen, isBegun: true });
      void load(folder).then(() => {
        for (const child of folder.folders) if (open.has(child.id.at(-1))) this.toggle(child.id);
      });
    },
  };
}

function folderOf(id: Id): Folder {
  const next = { of: "namespaces", token: undefined } as const;
  return {
    id,
    isOpen: false,
    isBegun: false,
    isLoading: false,
    error: undefined,
    folders: [],
    tables: [],
    next,
  };
}

function add(folder: Folder, of: keyof Lister, { names, next }: NamePage): void {
  if (of === "namespaces") {
    folder.folders.push(...names.map((name) => folderOf([...folder.id, name])));
    folder.next = next === undefined ? { of: "tables", token: undefined } : { of, token: next };
    return;
  }
  const level = folder.id.length + 1;
  for (const name of names) folder.tables.push({ kind: "table", id: [...folder.id, name], name, level });
  folder.next = next === undefined ? undefined : { of, token: next };
}

function* openFolders(folder: Folder): Iterable<Folder> {
  if (!folder.isOpen) return;
  yield folder;
  for (const child of folder.folders) yield* openFolders(child);
}

function visible(root: Folder, prefix: string): readonly TreeRow[] {
  const rows: TreeRow[] = [];
  const matches = (name: string) => prefix === "" || name.toLowerCase().startsWith(prefix);

  function show(folder: Folder): void {
    const level = folder.id.length + 1;
    for (const child of folder.folders) {
      const name = last(child.id);
      // An open namespace stays, because something in it may match.
      if (!child.isOpen && !matches(name)) continue;
      rows.push({ kind: "namespace", id: child.id, name, level, isOpen: child.isOpen });
      if (child.isOpen) show(child);
    }
    for (const row of folder.tables) if (matches(row.name)) rows.push(row);
    const note = noteOf(folder);
    if (note !== undefined) rows.push({ kind: note.kind, id: folder.id, name: note.text, level });
  }

  show(root);
  return rows;
}

function noteOf(folder: Folder): { readonly kind: "more" | "note"; readonly text: string } | undefined {
  const { error, isLoading, next, folders, tables } = folder;
  if (error !== undefined) return { kind: "more", text: `${error} Try again.` };
  if (next !== undefined) return { kind: "more", text: isLoading ? "Loading…" : "More tables…" };
  return folders.length + tables.length === 0 ? { kind: "note", text: "Nothing here yet" } : undefined;
}

function last(id: Id): string {
  return id.at(-1) ?? "";
}

/** Lines outside of the visible part that are drawn, too, so that scrolling shows no gaps. */
const MARGIN = 10;

/** Lines that are drawn, from `first` up to, but without `end`. */
interface Range {
  readonly first: number;
  readonly end: number;
}

/** Returns the lines of a scrolled list that are drawn. All lines have the same height, in pixels. */
export function visibleRange(scrolled: number, height: number, lineHeight: number, count: number): Range {
  const first = Math.max(0, Math.floor(scrolled / lineHeight) - MARGIN);
  const end = Math.min(count, Math.ceil((scrolled + height) / lineHeight) + MARGIN);
  return { first: Math.min(first, end), end };
}

/** Follows the visible part of a scrolling element. */
export function useViewport(
  element: RefObject<HTMLElement | null>,
  lineHeight: number,
  count: number,
): Range {
  const [place, setPlace] = useState({ scrolled: 0, height: 800 });
  useEffect(() => {
    const { current } = element;
    if (current === null) return;
    const measure = () => setPlace({ scrolled: current.scrollTop, height: current.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    current.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      current.removeEventListener("scroll", measure);
    };
  }, [element]);
  return visibleRange(place.scrolled, place.height, lineHeight, count);
}
