import {
  LEFTOVER_KINDS,
  type Leftover,
  type LeftoverKind,
} from "../../../backends/dir/maintenance/leftover.ts";
import type { Namespace } from "../../../client/namespace.ts";
import { readTable } from "../../../config/layers.ts";
import { type OptionTable, type OptionValues, UsageError } from "../../../config/option-spec.ts";
import { storageOptionsOf } from "../../../config/options/catalog.ts";
import { ROWS_OPTIONS } from "../../../config/options/foreign-catalogs.ts";
import type { ServeOptions } from "../../../config/options/groups.ts";
import { parseAge, parseSwitch } from "../../../config/parsers.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import { placeOf } from "../../place.ts";
import { confirm, YES_OPTION } from "../../terminal/confirm.ts";
import { jsonText } from "../../terminal/terminal-text.ts";
import {
  type CatalogChoice,
  JSON_OPTION,
  PLACE_OPTIONS,
  ROOT_OPTIONS,
  readPlace,
  withCatalog,
  withNamespace,
} from "../catalog.ts";
import type { CommandDefinition } from "../command.ts";
import { sizeText, textTable } from "../text-table.ts";
import { tablesBelow } from "./optimize.ts";

const OPTIONS = {
  delete: {
    flag: "delete",
    help: "Remove what is found instead of listing it.",
    fallback: "false",
    parse: parseSwitch,
  },
  olderThan: {
    flag: "older-than",
    value: "AGE",
    help: "Minimum age of what is removed, such as 90m, 12h or 7d; a writer may still work on younger files. Files in tables are at least 7d old. Less than 1h requires --exclusive.",
    fallback: "1d",
    parse: parseAge,
  },
  exclusive: {
    flag: "exclusive",
    help: "Confirm that no gateway and no other program writes to the catalog, so that --older-than may be less than 1h.",
    fallback: "false",
    parse: parseSwitch,
  },
  unlisted: {
    flag: "unlisted",
    help: "Remove datasets without a row, too. Deregistered tables are among them, and can be registered again only while they exist.",
    fallback: "false",
    parse: parseSwitch,
  },
  yes: { ...YES_OPTION, needs: { flag: "delete" } },
  json: JSON_OPTION,
} as const satisfies OptionTable;

/** Age below which files may belong to writes that run, in milliseconds. */
const WRITES_MS = 60 * 60_000;

/** Age below which a file in a table may belong to a commit to come, in milliseconds; Lance's own cleanup has the same limit. */
const TABLE_FILES_MS = 7 * 24 * 60 * 60_000;

/** @throws UsageError if files of running writes might be removed */
function checkAge({ delete: removes, olderThan, exclusive }: OptionValues<typeof OPTIONS>): void {
  if (!removes || exclusive || olderThan >= WRITES_MS) return;
  throw new UsageError(
    "--older-than below 1h may remove files of running writes, and tables lose data; stop all writers and add --exclusive",
  );
}

/** Result for a leftover. */
type Action = "would remove" | "removed" | "kept" | "failed";

interface Line extends Omit<Leftover, "remove"> {
  readonly action: Action;
  /** Reason of a failure. */
  readonly error?: string;
}

/** `lance-gateway gc`: finds and removes what crashes leave in a directory. */
export const gc: CommandDefinition = {
  groups: [
    { heading: "Options", options: OPTIONS, environment: false },
    {
      heading: "Catalog",
      options: { ...ROOT_OPTIONS, ...PLACE_OPTIONS, ...ROWS_OPTIONS },
      environment: true,
    },
  ],
  async run({ layers }, environment) {
    const options = readTable(OPTIONS, layers);
    checkAge(options);
    const connection = await readPlace(layers, environment);
    const { backend, root, allowedLocations } = connection;
    const isDirectory = backend === "dir";
    if (!isDirectory && options.unlisted)
      throw new UsageError("--unlisted is for directories; data without an entry in another catalog stays");
    if (options.delete && !options.yes)
      await confirm(
        `Remove what crashes left in ${isDirectory ? root : allowedLocations.join(", ")}${options.unlisted ? ", and all datasets without a row," : ""} for good`,
      );
    const lines = await (isDirectory ? leftoversIn(connection, options) : orphansOf(connection, options));
    process.stdout.write(options.json ? jsonOf(lines) : tableOf(lines, options.delete));
    return lines.some(({ action }) => action === "failed") ? 1 : 0;
  },
};

/** Kinds of leftovers that are removed from the places of a foreign catalog. */
const REMOVABLE: ReadonlySet<LeftoverKind> = new Set(["staged data", "upload", "probe", "job file"]);

type Options = OptionValues<typeof OPTIONS>;

async function leftoversIn(root: CatalogChoice, options: Options): Promise<Line[]> {
  const { findLeftovers } = await import("../../../backends/dir/maintenance/find-leftovers.ts");
  return withCatalog(root, options.delete, async ({ context }) => {
    const now = await context.clock.now();
    const before = now - options.olderThan;
    const beforeInTables = options.exclusive ? before : Math.min(before, now - TABLE_FILES_MS);
    const lines: Line[] = [];
    for await (const leftover of findLeftovers(context, before, beforeInTables)) {
      const wanted = leftover.kind !== "unlisted data" || options.unlisted;
      lines.push(await treat(leftover, wanted ? (options.delete ? "remove" : "tell") : "keep"));
    }
    return lines;
  });
}

/** Finds what crashes left in the places of another catalog, whose tables this gateway serves. */
async function orphansOf(connection: ServeOptions, options: Options): Promise<Line[]> {
  const { allowedLocations: places, storageOptions } = connection;
  if (places.length === 0)
    throw new UsageError(
      `this command works on a directory, and the connection is to ${placeOf(connection)}; --root or --context names a directory, or --rows here and --allowed-location say where the tables of that catalog may be`,
    );
  const { findOrphans } = await import("../../../backends/composed/find-orphans.ts");
  return withNamespace(connection, "read", async ({ namespace }) => {
    const lines: Line[] = [];
    const orphans = findOrphans({
      places,
      storageOptionsOf: (root) => storageOptionsOf(root, storageOptions, process.env),
      locations: () => locationsIn(namespace),
      ...{ olderThan: options.olderThan, removes: options.delete },
    });
    for await (const leftover of orphans) {
      const wanted = REMOVABLE.has(leftover.kind);
      lines.push(await treat(leftover, wanted ? (options.delete ? "remove" : "tell") : "keep"));
    }
    return lines;
  });
}

/** Yields the locations of all tables. */
async function* locationsIn(namespace: Namespace): AsyncGenerator<string> {
  for await (const table of tablesBelow(namespace, [])) {
    const described = await namespace.describeTable({ id: table }).catch((error: unknown) => {
      if (isLanceError(error, "TableNotFound")) return undefined;
      throw error;
    });
    if (described?.location) yield described.location;
  }
}

async function treat({ remove, ...facts }: Leftover, how: "remove" | "tell" | "keep"): Promise<Line> {
  if (how !== "remove") return { ...facts, action: how === "tell" ? "would remove" : "kept" };
  try {
    return { ...facts, action: (await remove()) ? "removed" : "kept" };
  } catch (error) {
    return { ...facts, action: "failed", error: error instanceof Error ? error.message : String(error) };
  }
}

function jsonOf(lines: readonly Line[]): string {
  const leftovers = lines.map(({ modifiedMillis, ...line }) => ({
    ...line,
    ...(modifiedMillis !== undefined && { modified: new Date(modifiedMillis).toISOString() }),
  }));
  return jsonText({ leftovers });
}

function tableOf(lines: readonly Line[], deletes: boolean): string {
  if (lines.length === 0) return "Nothing is left behind.\n";
  const rows = lines.map(({ action, error, kind, path, files, bytes, modifiedMillis }) => [
    error === undefined ? action : `${action}: ${error}`,
    kind,
    String(files),
    sizeText(bytes),
    modifiedMillis === undefined ? "" : new Date(modifiedMillis).toISOString().slice(0, 16).replace("T", " "),
    path,
  ]);
  const kinds = [...new Set(lines.map(({ kind }) => kind))].map(
    (kind) => `  ${kind}: ${LEFTOVER_KINDS[kind]}\n`,
  );
  const wanted: Action = deletes ? "removed" : "would remove";
  const chosen = lines.filter(({ action }) => action === wanted);
  const size = sizeText(chosen.reduce((sum, { bytes }) => sum + bytes, 0));
  const hint = deletes || chosen.length === 0 ? "" : "; --delete removes it";
  return [
    textTable([["ACTION", "KIND", "FILES", "SIZE", "WRITTEN (UTC)", "PATH"], ...rows]),
    ...["\n", ...kinds, "\n"],
    `${chosen.length} of ${lines.length} ${wanted === "removed" ? "removed" : "to remove"}, ${size}${hint}\n`,
  ].join("");
}
