import { isAbsolute, resolve } from "node:path";
import type { DirContext } from "../../../backends/dir/operations/context.ts";
import type { ImportSource } from "../../../backends/dir/operations/jobs/cluster-import.ts";
import type { ClusterImport } from "../../../backends/dir/operations/jobs/imported-version.ts";
import type { Namespace } from "../../../client/namespace.ts";
import { pathText } from "../../../client/object-path.ts";
import { UsageError } from "../../../config/option-spec.ts";
import type { ServeOptions } from "../../../config/options/groups.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import { whyNoSource } from "../../../namespace/root.ts";
import { type FileFormat, formatOfName, isTextFormat } from "../../files/formats.ts";
import { createProgress } from "../../terminal/progress.ts";
import { requireDirectory, withCatalog } from "../catalog.ts";

/** Facts about a running import command. */
interface ImportWork {
  readonly namespace: Namespace;
  readonly connection: ServeOptions;
  readonly signal: AbortSignal;
  readonly options: {
    readonly mode: string;
    readonly format: FileFormat | undefined;
    readonly encoding: string | undefined;
    readonly types: readonly (readonly [column: string, type: string])[];
    readonly round: boolean;
    readonly properties: readonly (readonly [name: string, value: string])[];
    readonly wait: number;
  };
  answer(value: unknown, text: () => string): Promise<void>;
}

/** Files, and the table that gets their rows. */
interface Target {
  readonly source: string;
  readonly id: Identifier;
}

/**
 * Has the cluster of a gateway import files, all or none. A new table is declared before, and removed if it gets no rows.
 *
 * @throws UsageError for files, modes and options that a cluster does not take
 */
export async function importOnCluster(work: ImportWork, { source, id }: Target): Promise<void> {
  const { namespace, connection, signal, options, answer } = work;
  const files = await filesOf(source, options);
  const root = requireDirectory(connection);
  const isNew = options.mode === "create";
  const properties = Object.fromEntries(options.properties);
  const declared = isNew ? await namespace.declareTable({ id, properties }, { signal }) : undefined;
  let done: ClusterImport;
  try {
    done = await withCatalog(root, true, ({ context }) =>
      follow(context, { id, files, waitMs: options.wait, signal }),
    );
  } catch (error) {
    // A job that may go on still needs its table. Why the import has failed matters more than what is left of it.
    if (declared !== undefined && !isLanceError(error, "OutcomeUnknown"))
      await dropUnwritten(namespace, id, declared.location).catch(() => {});
    throw error;
  }
  const { rows, version } = done;
  const target = pathText(id);
  await answer(
    { path: target, rows, version },
    () => `imported ${rows} row${rows === 1 ? "" : "s"} of ${source} into ${target}, version ${version}\n`,
  );
}

async function filesOf(source: string, options: ImportWork["options"]): Promise<ImportSource> {
  const { mode, encoding, types, round } = options;
  if (mode !== "create" && mode !== "append")
    throw new UsageError(`--engine ray takes --mode create or append, and not ${mode}`);
  const format = options.format ?? formatOfName(source);
  if (!isTextFormat(format) && (encoding !== undefined || types.length > 0 || round))
    throw new UsageError(`--encoding, --type and --round are for csv, tsv and jsonl, and not for ${format}`);
  if (encoding !== undefined || round)
    throw new UsageError(
      "--engine ray reads texts in UTF-8 and rounds nothing: --encoding and --round need --engine embedded",
    );
  if (mode === "append" && types.length > 0)
    throw new UsageError("--type is for new columns, and --mode append takes the types of the table");
  if (mode === "create" && isTextFormat(format) && types.length === 0)
    throw new UsageError(
      `a new table from ${format} needs --type for each column with --engine ray: the values of all files decide about types, and no worker has them all`,
    );
  const named = source.replace(/(?<=[^/])\/+$/, "");
  const place = named.includes("://") || isAbsolute(named) ? named : resolve(named);
  const why = whyNoSource(place);
  if (why !== undefined) throw new UsageError(`${source} cannot be imported by --engine ray: ${why}`);
  return { source: place, format, mode, ...(types.length > 0 && { schema: await schemaOf(types) }) };
}

/** Returns columns with the types of these names as an Arrow IPC stream in base64. */
async function schemaOf(types: ImportWork["options"]["types"]): Promise<string> {
  const arrow = await import("apache-arrow");
  const { typeOfName } = await import("../../../client/text/type-names.ts");
  const fields = [...new Map(types)].map(
    ([column, type]) => new arrow.Field(column, typeOfName(arrow, type), true),
  );
  const stream = arrow.tableToIPC(new arrow.Table(new arrow.Schema(fields)), "stream");
  return Buffer.from(stream).toString("base64");
}

interface Followed {
  readonly id: Identifier;
  readonly files: ImportSource;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Leaves the import to a gateway, and shows its progress. */
async function follow(context: DirContext, { id, files, waitMs, signal }: Followed): Promise<ClusterImport> {
  const { importElsewhere } = await import("../../../backends/dir/operations/jobs/cluster-import.ts");
  const { driverRecordsOf } = await import("../../../backends/dir/jobs/store.ts");
  const { requireTable } = await import("../../../backends/dir/operations/tables/find-table.ts");
  const table = await requireTable(context, { id });
  const records = driverRecordsOf(context.store, context.layout.baseKey);
  const progress = createProgress({ label: pathText(id), total: undefined, unit: "parts" });
  try {
    return await importElsewhere(context, table, files, {
      ...{ waitMs, signal },
      async onLook(job) {
        const { done, total } = (await records.progressOf(job.id)) ?? { done: 0, total: 0 };
        if (total > 0) progress.show(done, total);
      },
    });
  } finally {
    progress.end();
  }
}

/** Removes the table that has been declared for an import, unless it has rows by now; not another one that has got its name. */
async function dropUnwritten(
  namespace: Namespace,
  id: Identifier,
  declaredAt: string | undefined,
): Promise<void> {
  const { location } = await namespace.describeTable({ id });
  if (location !== declaredAt) return;
  for await (const _ of namespace.listTableVersions({ id })) return;
  await namespace.dropTable({ id });
}
