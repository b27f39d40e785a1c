import { useState } from "preact/hooks";
import { ListItems, NumberText } from "../../arrow/rows/json-text.ts";
import { textOfValue } from "../../arrow/rows/row-texts.ts";
import { formatCount } from "../shell/format.ts";

/** Items of a group or a list that are shown at first, and added at a time. */
const SOME_ITEMS = 100;

/** Depth up to which groups are open at first. */
const OPEN_DEPTH = 1;

interface JsonTreeProps {
  readonly value: unknown;
  /** Default: 0, the whole value. */
  readonly depth?: number;
}

/** A value with names and items as a tree, whose branches open and close. */
export function JsonTree({ value, depth = 0 }: JsonTreeProps) {
  const [most, setMost] = useState(SOME_ITEMS);
  const count = isList(value) ? value.length : Object.keys(value as object).length;
  const items = entriesOf(value, Math.min(count, most));
  return (
    <ul class="json">
      {items.map(([name, item]) => (
        <li key={name}>
          {isGroup(item) ? <Branch name={name} value={item} depth={depth} /> : leaf(name, item)}
        </li>
      ))}
      {count > most && (
        <li>
          <button type="button" class="quiet" onClick={() => setMost(most + SOME_ITEMS)}>
            {formatCount(count - most)} more…
          </button>
        </li>
      )}
    </ul>
  );
}

function Branch({ name, value, depth }: { name: string; value: unknown; depth: number }) {
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH);
  const size = isList(value) ? `[${value.length}]` : `{${Object.keys(value as object).length}}`;
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {name} <span class="muted">{size}</span>
      </summary>
      {isOpen && <JsonTree value={value} depth={depth + 1} />}
    </details>
  );
}

function leaf(name: string, value: unknown) {
  return (
    <>
      {name}:{" "}
      <span class={value === null ? "muted" : "json-value"}>
        {value === null ? "null" : textOfValue(value)}
      </span>
    </>
  );
}

function isList(value: unknown): value is ListItems | readonly unknown[] {
  return value instanceof ListItems || Array.isArray(value);
}

/** Whether a value has items. */
export function isGroup(value: unknown): boolean {
  return typeof value === "object" && value !== null && !(value instanceof NumberText);
}

function entriesOf(value: unknown, count: number): readonly (readonly [name: string, item: unknown])[] {
  if (isList(value)) return Array.from({ length: count }, (_, at) => [String(at), value.at(at)] as const);
  const entries = value instanceof Map ? Array.from(value) : Object.entries(value as object);
  return entries.slice(0, count);
}
