/** Most statements that a tab keeps. */
const MOST = 50;

const KEY = "lance-gateway-sql";

/** Returns the statements that ran in this tab, the newest first. They go when the tab closes, as what is in them may be secret. */
export function readHistory(storage: Pick<Storage, "getItem">): readonly string[] {
  try {
    const found: unknown = JSON.parse(storage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

/** Adds a statement to those of this tab, and returns them. */
export function addToHistory(
  storage: Pick<Storage, "getItem" | "setItem">,
  statement: string,
): readonly string[] {
  const next = [statement, ...readHistory(storage).filter((each) => each !== statement)].slice(0, MOST);
  storage.setItem(KEY, JSON.stringify(next));
  return next;
}

/** Forgets the statements of this tab. */
export function clearHistory(storage: Pick<Storage, "removeItem">): void {
  storage.removeItem(KEY);
}
