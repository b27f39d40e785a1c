import duckdb from "@duckdb/node-bindings";
import * as arrow from "apache-arrow";
import { isSet } from "../../arrow/ipc/arrays.ts";

/** A vector whose values are read. */
export interface Source {
  readonly vector: duckdb.Vector;
  readonly data: DataView;
  readonly validity: Uint8Array | null;
  readonly children: readonly Source[];
}

/** Collects the values of a column, batch by batch. */
export interface ColumnReader {
  readonly type: arrow.DataType;
  /** Opens a vector of so many values. */
  open(vector: duckdb.Vector, count: number): Source;
  /** Adds some values of a vector. */
  append(source: Source, from: number, count: number): void;
  /** Returns the values since the last time. */
  finish(): arrow.Data;
}

/** Bits that tell which values are there. */
export class Validity {
  #bits = new Uint8Array(512);
  length = 0;
  nulls = 0;

  append({ validity }: Source, from: number, count: number): void {
    const needed = (this.length + count + 7) >> 3;
    if (needed > this.#bits.byteLength) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.#bits.byteLength));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    for (let i = 0; i < count; i++, this.length++) {
      if (validity === null || isSet(validity, from + i))
        (this.#bits[this.length >> 3] as number) |= 1 << (this.length & 7);
      else this.nulls++;
    }
  }

  finish(): {
    readonly length: number;
    readonly nullCount: number;
    readonly nullBitmap: Uint8Array | undefined;
  } {
    const { length, nulls: nullCount } = this;
    const nullBitmap = nullCount === 0 ? undefined : this.#bits.slice(0, (length + 7) >> 3);
    this.#bits.fill(0);
    this.length = 0;
    this.nulls = 0;
    return { length, nullCount, nullBitmap };
  }
}

/** Whether a value is there. */
export function isValid({ validity }: Source, at: number): boolean {
  return validity === null || isSet(validity, at);
}

/** Opens a vector of so many values, each of so many bytes. */
export function openVector(
  vector: duckdb.Vector,
  count: number,
  bytes: number,
  children: readonly Source[],
): Source {
  const data = duckdb.vector_get_data(vector, count * bytes);
  const validity = duckdb.vector_get_validity(vector, Math.ceil(count / 64) * 8) as Uint8Array | null;
  return { vector, data: new DataView(data.buffer, data.byteOffset, data.byteLength), validity, children };
}

/** Returns the field of a column, which may have nulls. */
export function field(name: string, type: arrow.DataType): arrow.Field {
  return new arrow.Field(name, type, true);
}
