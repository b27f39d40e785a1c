/** An index of a table. */
export interface NativeIndex {
  readonly name: string;
  /** For example `FTS`, `BTree` or `IvfPq`. */
  readonly indexType: string;
  /** Field paths. */
  readonly columns: readonly string[];
  readonly indexUuid?: string;
  readonly typeUrl?: string;
  readonly createdAt?: Date;
  readonly numIndexedRows?: number;
  readonly numUnindexedRows?: number;
  readonly sizeBytes?: number;
  readonly numSegments?: number;
  readonly indexVersion?: number;
  /** An object whose shape depends on the type. */
  readonly indexDetails?: unknown;
}

/** Coverage of a table by an index. */
export interface NativeIndexStats {
  readonly numIndexedRows: number;
  readonly numUnindexedRows: number;
  /** For example `BTREE` or `IVF_PQ`. */
  readonly indexType: string;
  readonly distanceType?: string;
  readonly numIndices?: number;
}

/** A type of index with its parameters; made by {@link NativeIndexMakers}. */
export interface NativeIndexParameters {
  /** Only the engine makes these. */
  readonly nativeIndex?: never;
}

type Count = number | undefined;
type Flag = boolean | undefined;
type Text = string | undefined;

/** The makers of index parameters. They end the process for an unknown language. */
export interface NativeIndexMakers {
  btree(): NativeIndexParameters;
  bitmap(): NativeIndexParameters;
  labelList(): NativeIndexParameters;
  fm(): NativeIndexParameters;
  fts(
    withPosition: Flag,
    baseTokenizer: Text,
    language: Text,
    maxTokenLength: Count,
    lowerCase: Flag,
    stem: Flag,
    removeStopWords: Flag,
    customStopWords: string[] | undefined,
    asciiFolding: Flag,
    ngramMinLength: Count,
    ngramMaxLength: Count,
    prefixOnly: Flag,
    blockSize: Count,
  ): NativeIndexParameters;
  ivfFlat(distance: Text, partitions: Count, maxIterations: Count, sampleRate: Count): NativeIndexParameters;
  ivfPq(
    distance: Text,
    partitions: Count,
    subVectors: Count,
    bits: Count,
    maxIterations: Count,
    sampleRate: Count,
  ): NativeIndexParameters;
  ivfRq(
    distance: Text,
    partitions: Count,
    bits: Count,
    maxIterations: Count,
    sampleRate: Count,
  ): NativeIndexParameters;
  hnswPq(
    distance: Text,
    partitions: Count,
    subVectors: Count,
    maxIterations: Count,
    sampleRate: Count,
    m: Count,
    efConstruction: Count,
  ): NativeIndexParameters;
  hnswSq(
    distance: Text,
    partitions: Count,
    maxIterations: Count,
    sampleRate: Count,
    m: Count,
    efConstruction: Count,
  ): NativeIndexParameters;
}
