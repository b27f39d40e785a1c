import { useEffect, useMemo, useState } from "preact/hooks";
import type { Connection } from "../session/connection.ts";
import { Tree } from "./tree.tsx";
import type { Lister, TreeModel } from "./tree-model.ts";
import { createTreeModel } from "./tree-model.ts";

/** Names that the tree asks for at a time. */
const PAGE_NAMES = 1000;

/** Creates the model of the tree, which is drawn again when it changes, and read again when the window gets the focus. */
export function useTree({ namespace }: Connection): TreeModel {
  const [, redraw] = useState(0);
  const model = useMemo(() => {
    const lister: Lister = {
      async namespaces(id, pageToken) {
        const page = await namespace.listNamespaces({ id, pageToken, limit: PAGE_NAMES });
        return { names: page.namespaces, next: page.pageToken || undefined };
      },
      async tables(id, pageToken) {
        const page = await namespace.listTables({ id, pageToken, limit: PAGE_NAMES });
        return { names: page.tables, next: page.pageToken || undefined };
      },
    };
    return createTreeModel(lister, () => redraw((before) => before + 1));
  }, [namespace]);
  useEffect(() => {
    addEventListener("focus", model.refreshOpen);
    return () => removeEventListener("focus", model.refreshOpen);
  }, [model]);
  return model;
}

interface SidebarProps {
  readonly model: TreeModel;
  readonly selected: readonly string[];
  /** Called when an object is chosen. */
  onChosen(): void;
}

/** The tree of the catalog, with the search above it. */
export function Sidebar({ model, selected, onChosen }: SidebarProps) {
  const [prefix, setPrefix] = useState("");
  const path = selected.join("/");
  useEffect(() => model.reveal(selected), [model, path]);
  const rows = model.rows();
  return (
    <nav class="sidebar" aria-label="Catalog">
      <label class="search">
        <span class="visually-hidden">Names that begin with</span>
        <input
          type="search"
          placeholder="Names that begin with…"
          value={prefix}
          onInput={({ currentTarget }) => {
            setPrefix(currentTarget.value);
            model.search(currentTarget.value);
          }}
        />
      </label>
      {prefix !== "" && rows.length === 0 && <p class="note note-empty">No name begins with it.</p>}
      <Tree model={model} rows={rows} selected={selected} onChosen={onChosen} />
    </nav>
  );
}
