import { textOfValue } from "../../arrow/rows/row-texts.ts";
import { vectorText } from "../query/vector-text.ts";
import { CopyButton } from "../shell/copy-button.tsx";
import { formatBytes } from "../shell/format.ts";
import { cellOf, contentOf } from "./cells.ts";
import type { GridColumn } from "./columns.ts";
import { isGroup, JsonTree } from "./json-tree.tsx";
import { RowImage } from "./thumbnail.tsx";

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
