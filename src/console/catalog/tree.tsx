import { useEffect, useRef, useState } from "preact/hooks";
import { hrefOf } from "../shell/route.ts";
import { type TreeModel, type TreeRow, useViewport } from "./tree-model.ts";

/** Height of a line in pixels, as the style sheet has it. */
const LINE_HEIGHT = 30;

interface TreeProps {
  readonly model: TreeModel;
  readonly rows: readonly TreeRow[];
  /** The object whose page is shown. */
  readonly selected: readonly string[];
  /** Called when a table is chosen. */
  onChosen(): void;
}

/** The catalog, as the tree of the WAI-ARIA practices: arrows move, Enter opens. Only lines in view are elements. */
export function Tree({ model, rows, selected, onChosen }: TreeProps) {
  const element = useRef<HTMLDivElement>(null);
  const { first, end } = useViewport(element, LINE_HEIGHT, rows.length);
  const [active, setActive] = useState(0);
  const current = Math.min(active, rows.length - 1);

  const last = rows[end - 1];
  const isNearEnd = last?.kind === "more" && last.name === "More tables…";
  useEffect(() => {
    if (isNearEnd) model.loadMore(last.id);
  });

  function moveTo(index: number): void {
    const target = Math.max(0, Math.min(index, rows.length - 1));
    setActive(target);
    const list = element.current;
    if (list === null) return;
    const top = target * LINE_HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + LINE_HEIGHT > list.scrollTop + list.clientHeight)
      list.scrollTop = top + LINE_HEIGHT - list.clientHeight;
  }

  function act(row: TreeRow): void {
    if (row.kind === "more") model.loadMore(row.id);
    if (row.kind === "namespace" && !row.isOpen) model.toggle(row.id);
    if (row.kind === "namespace") location.hash = hrefOf({ page: "namespace", id: row.id });
    if (row.kind !== "table") return;
    location.hash = hrefOf({ page: "table", id: row.id, view: "rows" });
    onChosen();
  }

  function parentIndex(index: number): number {
    const level = rows[index]?.level ?? 1;
    let at = index;
    while (at > 0 && (rows[at]?.level ?? 0) >= level) at -= 1;
    return at;
  }

  function onKeyDown(event: KeyboardEvent): void {
    const row = rows[current];
    if (row === undefined) return;
    const page = Math.floor((element.current?.clientHeight ?? 0) / LINE_HEIGHT);
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => moveTo(current + 1),
      ArrowUp: () => moveTo(current - 1),
      PageDown: () => moveTo(current + page),
      PageUp: () => moveTo(current - page),
      Home: () => moveTo(0),
      End: () => moveTo(rows.length - 1),
      ArrowRight: () => (row.isOpen === false ? model.toggle(row.id) : moveTo(current + 1)),
      ArrowLeft: () => (row.isOpen ? model.toggle(row.id) : moveTo(parentIndex(current))),
      Enter: () => act(row),
      " ": () => act(row),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  }

  return (
    <div
      ref={element}
      class="tree"
      role="tree"
      aria-label="Catalog"
      tabIndex={0}
      aria-activedescendant={rows.length > 0 ? `line-${current}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div role="presentation" style={{ height: `${rows.length * LINE_HEIGHT}px` }}>
        {rows.slice(first, end).map((row, offset) => {
          const index = first + offset;
          return (
            <Line
              key={index}
              row={row}
              index={index}
              count={rows.length}
              isActive={index === current}
              isSelected={(row.kind === "table" || row.kind === "namespace") && sameId(row.id, selected)}
              onClick={() => {
                setActive(index);
                act(row);
              }}
              onToggle={() => model.toggle(row.id)}
            />
          );
        })}
      </div>
    </div>
  );
}

interface LineProps {
  readonly row: TreeRow;
  readonly index: number;
  readonly count: number;
  readonly isActive: boolean;
  readonly isSelected: boolean;
  onClick(): void;
  onToggle(): void;
}

function Line({ row, index, count, isActive, isSelected, onClick, onToggle }: LineProps) {
  const { kind, name, level, isOpen } = row;
  const style = { top: `${index * LINE_HEIGHT}px`, paddingInlineStart: `${(level - 1) * 16 + 8}px` };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the focus and handles its keys
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus
    <div
      id={`line-${index}`}
      class={`line line-${kind}${isActive ? " is-active" : ""}`}
      role="treeitem"
      aria-level={level}
      aria-posinset={index + 1}
      aria-setsize={count}
      aria-expanded={isOpen}
      aria-selected={isSelected}
      style={style}
      title={name}
      onClick={onClick}
    >
      <span
        class="line-mark"
        aria-hidden="true"
        onClick={(event) => {
          if (kind !== "namespace") return;
          event.stopPropagation();
          onToggle();
        }}
      />
      <span class="line-name">{name}</span>
    </div>
  );
}

function sameId(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, at) => name === b[at]);
}
