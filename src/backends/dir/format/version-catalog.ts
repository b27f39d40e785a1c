/** A version that its catalog has committed. */
export interface CatalogVersion {
  readonly version: bigint;
  /** Key of its manifest. */
  readonly key: string;
  /** Size of the manifest, in bytes. Default: the catalog does not say. */
  readonly size?: number | undefined;
  readonly eTag?: string | undefined;
  /** When it was committed, in milliseconds since 1970. Default: the catalog does not say. */
  readonly timestampMillis?: number | undefined;
}

/** A manifest that has been written and is to become a version. */
export interface StagedManifest {
  readonly version: bigint;
  /** Key of the manifest, which is in the dataset's `_versions` directory. */
  readonly key: string;
  /** Size of the manifest, in bytes. */
  readonly size: number;
  readonly eTag?: string | undefined;
  /** See `NamingScheme`. */
  readonly scheme: "V1" | "V2";
}

/**
 * Catalog that commits the versions of a table (managed versioning). Its answers decide which versions there are; the manifests are in the
 * `_versions` directory of the table all the same.
 *
 * The branch of all methods is undefined for main. A missing table or branch has an empty history.
 */
export interface VersionCatalog {
  /** Key of the table's directory. */
  readonly root: string;
  /** Yields the versions, the newest first and alone. */
  list(branch: string | undefined): AsyncIterable<readonly CatalogVersion[]>;
  /** Returns a version; undefined if there is none. */
  find(branch: string | undefined, version: bigint): Promise<CatalogVersion | undefined>;
  /**
   * Commits a staged manifest as a version, unless the number is taken. The staged manifest may remain.
   *
   * @throws LanceError ConcurrentModification if the number is taken, perhaps by this manifest; RefusedCommit if the catalog does not let the
   *   caller commit; OutcomeUnknown
   */
  commit(branch: string | undefined, staged: StagedManifest): Promise<CatalogVersion>;
  /** Deletes a version. @returns false if there was none */
  delete(branch: string | undefined, version: bigint): Promise<boolean>;
}
