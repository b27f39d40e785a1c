/** Returns an IPC stream for each row of parameters; one of nothing if there are none. */
export async function rowsOf(
  parameters: Uint8Array | undefined,
): Promise<readonly (Uint8Array | undefined)[]> {
  if (parameters === undefined || parameters.byteLength === 0) return [undefined];
  const { tableFromIPC, tableToIPC } = await import("apache-arrow");
  const table = tableFromIPC(parameters);
  return Array.from({ length: table.numRows }, (_, at) => tableToIPC(table.slice(at, at + 1), "stream"));
}
