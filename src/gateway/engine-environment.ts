/**
 * Sets variables that the engine reads once, when it is loaded; those that the user has set stay. Its warnings go past the
 * gateway's log, so that only errors are shown.
 */
export function prepareEngine(): void {
  process.env["LANCEDB_LOG"] ??= "error";
  // How far a scan reads ahead of its reader, in bytes; the engine's own default is 2 GiB.
  process.env["LANCE_DEFAULT_IO_BUFFER_SIZE"] ??= String(16 * 1024 ** 2);
}
