import { useEffect, useState } from "preact/hooks";
import { formatBytes } from "../shell/format.ts";
import { type Cell, vectorNumber } from "./cells.ts";
import { barsOf } from "./vector-bars.ts";

/** Longest text that is shown at once, in characters. */
const FOLD_AT = 120;

interface CellViewProps {
  readonly cell: Cell;
  /** What the value is, for people who do not see where it is. */
  readonly label: string;
  /** Searches for rows like the one of the value. Default: there is nothing to search with. */
  readonly onLike?: ((values: ArrayLike<number>) => void) | undefined;
}

/** A value of a row. */
export function CellView({ cell, label, onLike }: CellViewProps) {
  switch (cell.kind) {
    case "null":
      return <span class="cell-null">null</span>;
    case "time":
      return <time dateTime={cell.iso}>{cell.text}</time>;
    case "vector":
      return <VectorView values={cell.values} label={label} onLike={onLike} />;
    case "bytes":
      return cell.image === undefined ? (
        <span class="cell-null">{formatBytes(cell.bytes.byteLength)}</span>
      ) : (
        <ImageView bytes={cell.bytes} type={cell.image} label={label} />
      );
    default:
      return <FoldedText text={cell.text} />;
  }
}

function FoldedText({ text }: { text: string }) {
  if (text.length <= FOLD_AT) return <>{text}</>;
  return (
    <details class="fold">
      <summary>{text.slice(0, FOLD_AT)}…</summary>
      <p class="fold-rest">{text}</p>
    </details>
  );
}

const [BAR, GAP, HALF] = [3, 1, 10];

function VectorView({ values, label, onLike }: Omit<CellViewProps, "cell"> & { values: ArrayLike<number> }) {
  const bars = barsOf(values);
  const width = bars.length * (BAR + GAP);
  const numbers = Array.from(values, (value) => vectorNumber(value, values instanceof Float32Array)).join(
    ", ",
  );
  return (
    <div class="vector">
      <details class="fold">
        <summary aria-label={`${label}: vector of ${values.length} numbers`}>
          <svg class="bars" width={width} height={2 * HALF} aria-hidden="true">
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
        </summary>
        <p class="fold-rest numbers">{numbers}</p>
      </details>
      {onLike && (
        <button
          type="button"
          class="quiet"
          onClick={() => onLike(values)}
          title="Search for rows like this one"
        >
          like this
        </button>
      )}
    </div>
  );
}

function ImageView({ bytes, type, label }: { bytes: Uint8Array; type: string; label: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="fold" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {type.replace("image/", "").toUpperCase()} image, {formatBytes(bytes.byteLength)}
      </summary>
      {isOpen && <LoadedImage bytes={bytes} type={type} label={label} />}
    </details>
  );
}

function LoadedImage({ bytes, type, label }: { bytes: Uint8Array; type: string; label: string }) {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const url = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }));
    setAddress(url);
    return () => URL.revokeObjectURL(url);
  }, [bytes, type]);
  return address === undefined ? null : <img class="cell-image" src={address} alt={label} />;
}
