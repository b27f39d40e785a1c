import { useEffect, useState } from "preact/hooks";
import { formatBytes } from "../shell/format.ts";

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
