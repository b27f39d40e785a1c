import type { Logger } from "pino";

const nothing = () => {};

/** A logger that writes nothing and needs no library: a client's failures are thrown, not logged. */
export const SILENT_LOG = {
  level: "silent",
  isLevelEnabled: () => false,
  fatal: nothing,
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  trace: nothing,
  silent: nothing,
  child: () => SILENT_LOG,
} as unknown as Logger;
