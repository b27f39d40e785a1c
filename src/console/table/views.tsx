import { useEffect, useRef } from "preact/hooks";
import { hrefOf, type Params, type TableView } from "../shell/route.ts";

const VIEWS: Readonly<Record<TableView, string>> = {
  rows: "Rows",
  schema: "Schema",
  query: "Query",
  map: "Map",
  versions: "Versions",
  refs: "Branches and tags",
  indices: "Indices and jobs",
};

interface ViewsProps {
  readonly id: readonly string[];
  readonly current: TableView;
  /** The version and the branch that are shown. */
  readonly params: Params;
}

/** Links to the views of a table. A phone shows a part of them, the current one included. */
export function Views({ id, current, params }: ViewsProps) {
  const shown = useRef<HTMLAnchorElement>(null);
  useEffect(() => shown.current?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current]);
  return (
    <nav class="views" aria-label={`Views of ${id.at(-1) ?? ""}`}>
      {Object.entries(VIEWS).map(([each, title]) => (
        <a
          key={each}
          ref={each === current ? shown : null}
          href={hrefOf({ page: "table", id, view: each as TableView, params })}
          aria-current={each === current ? "page" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}
