/** What an attack is aimed at: a gateway over a directory. */
export interface Target {
  readonly port: number;
  /** A table of some 60 MB that nothing compresses. */
  readonly table: string;
}

/** Something that one client does to hurt the others. */
export interface Attack {
  /** A few words for the table of figures. */
  readonly title: string;
  /** Resolves when the attack is under way; it then lasts until its process ends. */
  launch(target: Target): Promise<void>;
}
