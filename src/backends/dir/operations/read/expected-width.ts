import { fieldNamed } from "../../../../arrow/field-path.ts";
import { rowWidth } from "../../../../arrow/row-width.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import { BLOB_TYPE, EXTENSION } from "../../format/files/blob-files.ts";
import type { BuiltQuery } from "../query/build.ts";
import { OF_RESULTS } from "../query/columns.ts";
import type { Guarded } from "../tables/call-data.ts";

/**
 * Returns the number of bytes that a row of a result is expected to have: as many as in the widest recent result with these columns, or
 * at first as many as a row of the whole table has by types and by the size of the data files.
 *
 * @throws LanceError the errors of `wait`
 */
export async function expectedWidth(
  { columns }: Pick<BuiltQuery, "columns">,
  data: Guarded,
): Promise<number> {
  const known = data.widths.of(columns);
  if (known !== undefined) return known;
  const schema = await data.schema();
  const width = Math.max(rowWidth(schema).bytes, await data.averageRow());
  if (hasLargeValues(columns, schema)) data.widths.expect(columns, width);
  return width;
}

/**
 * Whether most bytes of the table may be in these columns. Otherwise narrow results prove that others are narrow, too; here a reader
 * could ask for narrow rows first, and then for many wide ones at once.
 */
function hasLargeValues(columns: string | undefined, { fields }: ArrowSchema): boolean {
  if (columns === "") return !fields.some(isBlob) || fields.some(hasBinary);
  return (columns ?? "").split("\n").some((name) => {
    if (name === "" || OF_RESULTS.has(name)) return false;
    const field = fieldNamed(fields, name);
    return field === undefined || hasBinary(field);
  });
}

function hasBinary(field: ArrowField): boolean {
  if (isBlob(field)) return false;
  return /^(?:large_)?binary/.test(field.type.name) || field.children.some(hasBinary);
}

/** Whether results have the place of a value instead of its bytes. */
export function isBlob({ metadata }: ArrowField): boolean {
  return metadata[EXTENSION] === BLOB_TYPE;
}
