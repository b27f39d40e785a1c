import type { Memory } from "../memory.ts";

/** Number of rows of a page. */
export const PAGE_ROWS = 2048;
export const PAGE_SHIFT = 11;
export const PAGE_MASK = PAGE_ROWS - 1;

/** Columns of the rows of a page: positions and lengths of their texts in bytes, their addresses and their kinds. */
export interface ColumnPage {
  readonly buffer: ArrayBufferLike;
  readonly chunk: Uint32Array;
  readonly at: Uint32Array;
  readonly idLength: Uint32Array;
  readonly nameStart: Uint32Array;
  readonly locationLength: Uint32Array;
  readonly metadataLength: Uint32Array;
  readonly fragment: Uint32Array;
  readonly offset: Uint32Array;
  readonly kind: Uint32Array;
}

const COLUMNS = 9;
const COLUMN_BYTES = PAGE_ROWS * Uint32Array.BYTES_PER_ELEMENT;

/** Columns of rows in pages. A page that others may read is copied before it is changed. */
export interface ColumnPages {
  /** The pages in order; a row has the place {@link PAGE_MASK} in the page {@link PAGE_SHIFT}. */
  readonly pages: readonly ColumnPage[];
  /** Returns the page of a row for changes; creates it if the row is the one after the last page. */
  writable(row: number): ColumnPage;
  /** Returns the memory of all pages, which is not changed from now on. */
  share(): readonly ArrayBufferLike[];
}

/**
 * Creates pages.
 *
 * @param content memory of other pages, which is not changed. Default: none.
 */
export function createColumnPages(memory: Memory, content: readonly ArrayBufferLike[] = []): ColumnPages {
  const pages = content.map(pageOn);
  const isOwn = content.map(() => false);

  function replace(number: number, before: ColumnPage | undefined): ColumnPage {
    const buffer = memory.take(COLUMNS * COLUMN_BYTES);
    if (before !== undefined) new Uint8Array(buffer).set(new Uint8Array(before.buffer));
    isOwn[number] = true;
    pages[number] = pageOn(buffer);
    return pages[number];
  }
  return {
    pages,
    writable(row) {
      const number = row >>> PAGE_SHIFT;
      const page = pages[number];
      return page !== undefined && isOwn[number] ? page : replace(number, page);
    },
    share() {
      isOwn.fill(false);
      return pages.map(({ buffer }) => buffer);
    },
  };
}

function pageOn(buffer: ArrayBufferLike): ColumnPage {
  const column = (number: number) => new Uint32Array(buffer, number * COLUMN_BYTES, PAGE_ROWS);
  return {
    buffer,
    chunk: column(0),
    at: column(1),
    idLength: column(2),
    nameStart: column(3),
    locationLength: column(4),
    metadataLength: column(5),
    fragment: column(6),
    offset: column(7),
    kind: column(8),
  };
}
