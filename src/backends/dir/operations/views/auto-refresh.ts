import type { Logger } from "pino";
import { isLanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier, sameIdentifier } from "../../../../namespace/identifier.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import { walkTables } from "../../catalog/walk.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { latestVersion, readVersion } from "../../format/versions/version-files.ts";
import { type Job, mayPass } from "../../jobs/job.ts";
import { findTable } from "../tables/find-table.ts";
import { objectIdOf } from "../tables/naming/object-names.ts";
import { datasetOf } from "../tables/open-data.ts";
import { isAutoView, readDefinition, SOURCE_QUERY } from "./definition.ts";
import { parseViewQuery } from "./query-text.ts";
import { REFRESH_VIEW, type SubmitContext, submitRefresh } from "./submit.ts";
import { hasRefreshedRows, isRecorded, readState } from "./view-state.ts";

/** Times of automatic refreshes, in milliseconds. */
export interface AutoRefreshTimes {
  /** Quiet time after a write to a source, so that a burst of writes is followed by one refresh. */
  readonly settleMs: number;
  /** Longest time from a first write to the refresh. */
  readonly waitMs: number;
  /** Shortest time from one look for views in a changed catalog to the next. */
  readonly lookMs: number;
}

/** Longest time for which a refresh is followed, in milliseconds: the longest of a timer. */
const FOLLOW_MS = 2 ** 31 - 1;

export const AUTO_REFRESH_TIMES: AutoRefreshTimes = { settleMs: 1_000, waitMs: 10_000, lookMs: 60_000 };

/** Refreshes of views with `auto_refresh` when their sources have changed. */
export interface AutoRefresh {
  /** Notes a write to a table; the root means all tables. */
  note(table: Identifier): void;
  close(): Promise<void>;
}

/** A table whose views are looked at when it is due. Times are those of `performance.now`. */
interface Written {
  readonly id: Identifier;
  readonly firstAt: number;
  dueAt: number;
}

/**
 * Starts to refresh views whose sources change by this process, and those that earlier processes have left behind.
 * A refresh is a job. A view whose refresh waits for its turn gets no second one, whichever process asked for it.
 *
 * @param catchesUp whether to look for views that were left behind, which walks all tables. Default: true.
 */
export function startAutoRefresh(
  context: SubmitContext & { readonly log: Logger },
  overrides: Partial<AutoRefreshTimes> = {},
  catchesUp = true,
): AutoRefresh {
  const times = { ...AUTO_REFRESH_TIMES, ...overrides };
  const { catalog, jobs, log } = context;
  const register = createViewRegister(catalog, times.lookMs);
  const written = new Map<string, Written>();
  let timer: NodeJS.Timeout | undefined;
  let firesAt = 0;
  let isRunning = false;
  let running = Promise.resolve();
  let closed = false;

  function note(id: Identifier): void {
    const now = performance.now();
    const key = objectIdOf(id);
    const { firstAt } = written.get(key) ?? { firstAt: now };
    written.set(key, { id, firstAt, dueAt: Math.min(now + times.settleMs, firstAt + times.waitMs) });
    schedule();
  }
  /** Looks at the views of a table again after a failure, which may not pass: later than after a write. */
  function noteFailure(id: Identifier): void {
    const later = performance.now() + times.lookMs;
    const key = objectIdOf(id);
    if (!written.has(key)) written.set(key, { id, firstAt: later, dueAt: later });
  }
  function schedule(): void {
    if (isRunning || closed || written.size === 0) return;
    let due = Number.POSITIVE_INFINITY;
    for (const { dueAt } of written.values()) due = Math.min(due, dueAt);
    if (timer !== undefined && due >= firesAt) return;
    clearTimeout(timer);
    firesAt = due;
    timer = setTimeout(fire, Math.max(0, due - performance.now())).unref();
  }

  function fire(): void {
    timer = undefined;
    isRunning = true;
    const now = performance.now();
    const due = [...written].filter(([, { dueAt }]) => dueAt <= now);
    for (const [key] of due) written.delete(key);
    const tables = due.map(([, { id }]) => id);
    running = refreshViewsOf(tables)
      .catch((error) => {
        log.warn({ err: error }, "views cannot be refreshed by themselves now");
        for (const id of tables) noteFailure(id);
      })
      .finally(() => {
        isRunning = false;
        schedule();
      });
  }
  async function refreshViewsOf(tables: readonly Identifier[]): Promise<void> {
    const names = new Set(tables.map(objectIdOf));
    const views = await register.viewsOf(tables);
    // The writes came before this look, so that a refresh that waits now does not miss them.
    const open = views.length === 0 ? [] : await openRefreshes();
    for (const view of views) {
      if (closed) return;
      const { id, source } = view;
      const isChanged = names.has(objectIdOf(source));
      try {
        const own = open.filter(({ table }) => sameIdentifier(table, id));
        if ((await refreshOf(view, isChanged, own)) === "unfinished") note(source);
      } catch (error) {
        log.warn({ err: error, view: joinIdentifier(id) }, "a view cannot be refreshed by itself now");
        // A look at all views leaves those empty that were created without data.
        noteFailure(isChanged ? source : []);
      }
    }
  }
  async function openRefreshes(): Promise<readonly Job[]> {
    return (await jobs.open()).filter(({ kind }) => kind === REFRESH_VIEW);
  }

  /**
   * Starts the refresh of a view that is not up to date; returns "unfinished" if another one has to end first, which may
   * miss the last rows: it has begun, or is to an older version. A view that was created without data stays empty until its
   * source changes.
   *
   * @param open the refreshes of the view that have not ended
   */
  async function refreshOf(
    { id, source }: AutoView,
    isChanged: boolean,
    open: readonly Job[],
  ): Promise<"unfinished" | undefined> {
    const view = await findTable(context, await catalog.read(), id);
    if (view === undefined || (await isCurrent(view, !isChanged))) return undefined;
    if (open.some(({ state, spec }) => state === "queued" && spec["sourceVersion"] === undefined))
      return undefined;
    if (open.length > 0) return "unfinished";
    void follow(await submitRefresh(context, id), source);
    return undefined;
  }
  /** Waits for a refresh, and looks at the views of its source again if it fails for a reason that may pass. */
  async function follow(jobId: string, source: Identifier): Promise<void> {
    const job = await jobs.ended(jobId, FOLLOW_MS).catch(() => undefined);
    if (job === undefined || !mayPass(job)) return;
    noteFailure(source);
    schedule();
  }
  async function isCurrent(view: FoundTable, mayBeEmpty: boolean): Promise<boolean> {
    const { sourceQuery } = readDefinition(view);
    const source = await findTable(context, await catalog.read(), parseViewQuery(sourceQuery).source);
    // A view without its source stays as it is.
    const newest = source && (await latestVersion(datasetOf(context, source)));
    if (source === undefined || newest === undefined) return true;
    const { manifest } = await readVersion(datasetOf(context, view));
    const state = readState(manifest);
    if (state === undefined) return mayBeEmpty;
    if (state.source !== source.location || state.sourceVersion !== String(newest.version)) return false;
    const origin = (await readVersion(datasetOf(context, source), newest.version)).manifest;
    return isRecorded(state, origin) && hasRefreshedRows(datasetOf(context, view), state, manifest);
  }

  if (catchesUp) note([]);
  return {
    note,
    async close() {
      closed = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** A view with `auto_refresh`, and the table that it reads. */
interface AutoView {
  readonly id: Identifier;
  readonly source: Identifier;
}

/** The views with `auto_refresh` of a catalog. */
interface ViewRegister {
  /** Returns the views that read one of the tables; the root means all tables. */
  viewsOf(tables: readonly Identifier[]): Promise<AutoView[]>;
}

/** Creates a register that looks for views of other processes at most every so many milliseconds. */
export function createViewRegister(catalog: Pick<Catalog, "read" | "known">, lookMs: number): ViewRegister {
  const views = new Map<string, AutoView>();
  let lookedAt = Number.NEGATIVE_INFINITY;

  /** Brings the entry of a table up to date with a state of the catalog. */
  function look(state: CatalogView, id: Identifier): void {
    const properties = state.get(objectIdOf(id))?.properties ?? {};
    const query = isAutoView(properties) ? properties[SOURCE_QUERY] : undefined;
    const source = query === undefined ? undefined : sourceIn(query);
    if (source === undefined) views.delete(objectIdOf(id));
    else views.set(objectIdOf(id), { id, source });
  }
  async function lookAtAll(): Promise<void> {
    const now = performance.now();
    if (now - lookedAt < lookMs) return;
    // The walk reads the catalog now and then; a check for each table would be a request to a bucket for each.
    for await (const id of walkTables(catalog)) look(catalog.known(), id);
    // Those that others have dropped, or that were dropped with their namespace.
    const state = catalog.known();
    for (const key of views.keys()) if (state.get(key) === undefined) views.delete(key);
    lookedAt = now;
  }

  return {
    async viewsOf(tables) {
      await lookAtAll();
      const state = await catalog.read();
      for (const table of tables) look(state, table);
      const names = new Set(tables.map(objectIdOf));
      return [...views.values()].filter(({ source }) => names.has("") || names.has(objectIdOf(source)));
    },
  };
}

/** Returns the table that a view reads; undefined for an invalid query, which another program can give a table as a property. */
function sourceIn(query: string): Identifier | undefined {
  try {
    return parseViewQuery(query).source;
  } catch (error) {
    if (isLanceError(error, "InvalidInput")) return undefined;
    throw error;
  }
}
