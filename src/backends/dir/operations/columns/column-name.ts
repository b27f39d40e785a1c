import { LanceError } from "../../../../namespace/errors.ts";

/** Columns that the engine adds to those of the table while it reads. No query can read a table that has one of them. */
const SYSTEM_COLUMNS = [
  "_rowid",
  "_rowaddr",
  "_rowoffset",
  "_row_created_at_version",
  "_row_last_updated_at_version",
];

/**
 * Refuses names of the engine's own columns, a name with a dot, because the format joins the names of nested fields with dots,
 * one with a backtick, by which no implementation finds the column, and one with a null character, with which clients that take the
 * schema through Arrow's C interface end their process.
 *
 * @throws LanceError InvalidInput
 */
export function checkName(name: string): string {
  if (SYSTEM_COLUMNS.includes(name)) throw invalid(`the name ${name} is reserved for the engine`);
  if (name === "") throw invalid("the name of a column must not be empty");
  if (name.includes(".")) throw invalid(`the name ${JSON.stringify(name)} must not have a dot`);
  if (name.includes("`")) throw invalid(`the name ${JSON.stringify(name)} must not have a backtick`);
  if (name.includes("\0")) throw invalid(`the name ${JSON.stringify(name)} must not have a null character`);
  return name;
}

function invalid(message: string): LanceError {
  return new LanceError("InvalidInput", message);
}
