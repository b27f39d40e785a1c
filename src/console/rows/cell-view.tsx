import { useEffect, useState } from "preact/hooks";
import { formatBytes } from "../shell/format.ts";
import { barsOf, type Cell } from "./cells.ts";

/** Longest text that a line has, in characters. */
const LINE_CHARACTERS = 160;

interface CellViewProps {
  readonly cell: Cell;
  /** What the value is, for people who do not see where it is. */
  readonly label: string;
  /** Searches for rows like the one of the value. Default: there is nothing to search with. */
  readonly onLike?: ((values: ArrayLike<number>) => void) | undefined;
}

/** A value of a row, in a line. */
export function CellView({ cell, label, onLike }: CellViewProps) {
  switch (cell.kind) {
    case "null":
      return <span class="cell-null">null</span>;
    case "time":
      return <time dateTime={cell.iso}>{cell.text}</time>;
    case "vector":
      return (
        <span class="vector">
          <Bars values={cell.values} label={`${label}: vector of ${cell.values.length} numbers`} />
          {onLike && (
            <button
              type="button"
              class="quiet"
              onClick={() => onLike(cell.values)}
              title="Search for rows like this one"
            >
              like this
            </button>
          )}
        </span>
      );
    case "bytes":
      return cell.image === undefined ? (
        <span class="cell-null">{formatBytes(cell.bytes.byteLength)}</span>
      ) : (
        <RowImage bytes={cell.bytes} type={cell.image} label={label} isLarge={false} />
      );
    default:
      return <>{lineOf(cell.text)}</>;
  }
}

/** Returns the beginning of a text as a line. */
function lineOf(text: string): string {
  const line = text.slice(0, LINE_CHARACTERS).replaceAll(/\s+/g, " ");
  return text.length > LINE_CHARACTERS ? `${line}…` : line;
}

const [BAR, GAP, HALF] = [3, 1, 10];

function Bars({ values, label }: { values: ArrayLike<number>; label: string }) {
  const bars = barsOf(values);
  return (
    <svg class="bars" width={bars.length * (BAR + GAP)} height={2 * HALF} role="img" aria-label={label}>
      {bars.map((bar, at) => (
        <rect
          key={at}
          class={bar < 0 ? "bar-below" : "bar-above"}
          x={at * (BAR + GAP)}
          y={bar < 0 ? HALF : HALF - bar * HALF}
          width={BAR}
          height={Math.max(Math.abs(bar) * HALF, 0.5)}
        />
      ))}
    </svg>
  );
}

interface ImageProps {
  readonly bytes: Uint8Array;
  /** Its media type. */
  readonly type: string;
  readonly label: string;
  /** Whether it is shown as large as it is, up to the height of a page. */
  readonly isLarge: boolean;
}

/** An image in a row; bytes that only begin like an image are shown by their length. */
export function RowImage({ bytes, type, label, isLarge }: ImageProps) {
  const [address, setAddress] = useState<string>();
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    const url = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }));
    setAddress(url);
    setBroken(false);
    return () => URL.revokeObjectURL(url);
  }, [bytes, type]);
  const facts = `${type.replace("image/", "").toUpperCase()} image, ${formatBytes(bytes.byteLength)}`;
  return (
    <span class="image">
      {address !== undefined && !isBroken && (
        <img
          class={isLarge ? "image-large" : "thumbnail"}
          src={address}
          alt={label}
          title={facts}
          onError={() => setBroken(true)}
        />
      )}
      {(isLarge || isBroken) && <span class="cell-null">{facts}</span>}
    </span>
  );
}
