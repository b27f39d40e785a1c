/** A change that is ready to take effect. */
export interface PreparedChange {
  /** Serves by the new configuration from now on, and closes what only the former one used, once its calls have ended. */
  commit(): void;
  /** Closes what was opened. */
  abort(): Promise<void>;
}
