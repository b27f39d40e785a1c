/** How a table takes writes through a log, in the engine's words. */
export interface NativeLsmWriteSpec {
  /** `bucket`, `identity` or `unsharded`. */
  readonly specType: string;
  /** The sharding column of `bucket` and `identity`. */
  readonly column?: string;
  readonly numBuckets?: number;
  readonly maintainedIndexes?: readonly string[];
  readonly writerConfigDefaults?: Readonly<Record<string, string>>;
}
