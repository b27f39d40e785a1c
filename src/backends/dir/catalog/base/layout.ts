/** Directories of the tables of a catalog, and their marks. */
export interface Layout {
  /** Path or URI of the directory that contains the manifest and the tables. */
  readonly base: string;
  /** Key of the base directory. */
  readonly baseKey: string;
  /**
   * Returns the absolute path or the URI of a location.
   *
   * @throws LanceError InvalidInput if it would be outside of the base, or in the manifest or other parts of the catalog itself.
   */
  pathOf(location: string): string;
  /** Returns the location at an absolute path or a URI; undefined if it is not below the base. */
  relativeTo(path: string): string | undefined;
  /**
   * Checks that no symbolic link leads a table out of the base.
   *
   * @throws LanceError InvalidInput
   */
  checkNoEscape(location: string): Promise<void>;
  /** Whether a location contains a dataset, and not only a declaration; false for one that leads out of the base. */
  hasData(location: string): Promise<boolean>;
  /**
   * Like {@link hasData}, but distinguishes declared tables, which have a mark, from directories that have disappeared.
   */
  dataState(location: string): Promise<"written" | "declared" | "lost">;
  /** Whether a location contains anything; false for one that leads out of the base. */
  exists(location: string): Promise<boolean>;
  /** Whether a location contains nothing, not even marks, so that a table may {@link claim} it. */
  isEmpty(location: string): Promise<boolean>;
  /** Whether a directory without a row is a table: it has data or is declared, and is not deregistered. */
  isUnlistedTable(location: string): Promise<boolean>;
  /** Lists the `*.lance` directories of the base. */
  tableDirectories(): Promise<string[]>;
  /** Marks a location as declared. */
  reserve(location: string): Promise<void>;
  /** Marks a location as declared that was drawn for a single table and that no other writer uses. */
  reserveNew(location: string): Promise<void>;
  /**
   * Takes an empty location for a table that is about to be declared. Exactly one of several callers gets it, and none
   * while a former table's directory is being removed. Until {@link reveal}, implementations that list directories do
   * not treat a directory of the root as a table.
   *
   * @param claim a text that no other claim has
   * @returns false if the location contains anything, or another caller has claimed it
   */
  claim(location: string, claim: string): Promise<boolean>;
  /** Whether a location of the root contains the mark of a claim and nothing else. */
  isClaimed(location: string): Promise<boolean>;
  /**
   * Takes an old claim of a root location away, so that the location is empty and others may claim it. Call it for a
   * location without a row: an owner that is only slow finds its mark gone when it has its row, and puts another one.
   *
   * @param before time before which the claim was made, in milliseconds since 1970 by the clock of the storage
   * @returns false without an old claim, or if another caller was faster
   */
  expireClaim(location: string, before: number): Promise<boolean>;
  /**
   * Shows a claimed directory to implementations that list directories.
   *
   * @param claim the text of the claim
   * @returns false if the directory has another mark or none, for example because the table has been dropped
   */
  reveal(location: string, claim: string): Promise<boolean>;
  /** Gives a claim back: removes the directory if it contains the mark of the claim and nothing else. */
  unclaim(location: string, claim: string): Promise<boolean>;
  /** Whether a directory is marked as a declared table or as deregistered. */
  isMarked(location: string): Promise<boolean>;
  /** Whether a directory is marked as deregistered. */
  isDeregistered(location: string): Promise<boolean>;
  /**
   * Marks a directory as deregistered that a change takes from its table by its commit, beside other changes that are
   * about to. A table that another one follows in the same place has another mark.
   *
   * @param change the id of the change
   */
  putAside(location: string, change: string): Promise<void>;
  /** Whether a change has {@link putAside} the directory. */
  isPutAside(location: string, change: string): Promise<boolean>;
  /**
   * Marks a directory as deregistered, or removes the mark; a directory without data stays a declared table then.
   *
   * @param isDeparting whether a change that has {@link putAside} the directory still needs its mark; the directory stays
   *   marked for it
   */
  setDeregistered(
    location: string,
    deregistered: boolean,
    isDeparting: (change: string) => Promise<boolean>,
  ): Promise<void>;
  /**
   * Removes a table's files and its directory, which stays if it contains anything else; returns false if it did not
   * exist, or if another caller removed it.
   */
  remove(location: string): Promise<boolean>;
  /**
   * Like {@link remove}, but the location may get another directory, or a row, at any moment of this call.
   *
   * @param isFormer whether the directory is the one to remove; asked, also with another key in its place, when what is in
   *   it is known and nothing has been removed
   */
  removeIf(location: string, isFormer: (key: string) => Promise<boolean>): Promise<boolean>;
  /**
   * Like {@link remove}, but only the directory that a change has {@link putAside}: it may have been removed already, and
   * the location may belong to another table at any moment of this call.
   *
   * @param isLeft whether a directory is that one although it lacks the mark of the change; asked when what is in it is
   *   known, it is more than a claim, and nothing has been removed
   */
  removePutAside(location: string, change: string, isLeft: () => Promise<boolean>): Promise<boolean>;
  /** Completes a {@link removePutAside} of a process that ended in the middle of it, whatever is at the location now. */
  completeRemoval(location: string, change: string): Promise<void>;
}
