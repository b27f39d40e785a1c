import { useState } from "preact/hooks";
import { ListItems, NumberText } from "../../arrow/rows/json-text.ts";
import { textOfValue } from "../../arrow/rows/row-texts.ts";
import { vectorText } from "../query/query-form.ts";
import { CopyButton } from "../shell/copy-button.tsx";
import { formatBytes, formatCount } from "../shell/format.ts";
import { RowImage } from "./cell-view.tsx";
import { cellOf, contentOf } from "./cells.ts";
import type { GridColumn } from "./columns.ts";

/** Bytes that are shown in hexadecimal digits. */
const SHOWN_BYTES = 256;

interface RowDetailProps {
  readonly columns: readonly GridColumn[];
  readonly index: number;
  /** The row, for people who do not see where it is. */
  readonly label: string;
}

/** All values of a row, each as a whole. */
export function RowDetail({ columns, index, label }: RowDetailProps) {
  return (
    <dl class="detail">
      {columns.map((column) => (
        <div key={column.name}>
          <dt>
            <span>{column.name}</span>
            <CopyButton label={`${column.name} of ${label}`} textOf={() => textAt(column, index)} />
          </dt>
          <dd>
            <WholeValue column={column} index={index} label={`${column.name} of ${label}`} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Returns a value as a text: what an export has, and nothing for null. */
export function textAt({ values }: GridColumn, index: number): string {
  return values?.isValid(index) ? textOfValue(contentOf(values, index)) : "";
}

interface WholeValueProps {
  readonly column: GridColumn;
  readonly index: number;
  readonly label: string;
}

function WholeValue({ column: { values }, index, label }: WholeValueProps) {
  const cell = values === null ? ({ kind: "null" } as const) : cellOf(values, index);
  switch (cell.kind) {
    case "null":
      return <span class="cell-null">null</span>;
    case "time":
      return <time dateTime={cell.iso}>{cell.text}</time>;
    case "vector":
      return <Whole text={vectorText(cell.values)} isNumbers />;
    case "bytes":
      return cell.image === undefined ? (
        <Whole text={hexOf(cell.bytes)} isNumbers />
      ) : (
        <RowImage bytes={cell.bytes} type={cell.image} label={label} isLarge />
      );
    case "json": {
      const content = values && contentOf(values, index);
      return isGroup(content) ? <JsonTree value={content} /> : <Whole text={cell.text} />;
    }
    default:
      return <Whole text={cell.text} />;
  }
}

interface WholeProps {
  readonly text: string;
  /** Whether all characters have the same width. Default: false. */
  readonly isNumbers?: boolean;
}

function Whole({ text, isNumbers = false }: WholeProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <p class={`whole${isNumbers ? " numbers" : ""}`} tabIndex={0}>
      {text}
    </p>
  );
}

function hexOf(bytes: Uint8Array): string {
  const shown = Array.from(bytes.subarray(0, SHOWN_BYTES), (byte) => byte.toString(16).padStart(2, "0")).join(
    " ",
  );
  return bytes.length > SHOWN_BYTES ? `${shown} … (${formatBytes(bytes.length)})` : shown;
}

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
function JsonTree({ value, depth = 0 }: JsonTreeProps) {
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
function isGroup(value: unknown): boolean {
  return typeof value === "object" && value !== null && !(value instanceof NumberText);
}

function entriesOf(value: unknown, count: number): readonly (readonly [name: string, item: unknown])[] {
  if (isList(value)) return Array.from({ length: count }, (_, at) => [String(at), value.at(at)] as const);
  const entries = value instanceof Map ? Array.from(value) : Object.entries(value as object);
  return entries.slice(0, count);
}
