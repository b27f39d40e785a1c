import { create } from "@bufbuild/protobuf";
import { END_OF_STREAM } from "../../../../arrow/ipc/stream.ts";
import {
  DescribeMaterializedViewResponseSchema,
  DropMaterializedViewResponseSchema,
  ListMaterializedViewsResponseSchema,
} from "../../../../gen/lance/gateway/v1/view_pb.ts";
import { CreateTableMode, CreateTableRequestSchema } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { DropTableRequestSchema } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import {
  CreateMaterializedViewResponseSchema,
  RefreshMaterializedViewResponseSchema,
} from "../../../../gen/lance/namespace/v1/view_pb.ts";
import { type Call, copyCall } from "../../../../namespace/call/call.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier, sameIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceDbExtensions, LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { isForCluster } from "../../jobs/job.ts";
import type { CatalogDataContext, PageContext } from "../context.ts";
import { tableOf } from "../jobs/jobs.ts";
import { decodeToken, encodeToken, pageSize } from "../paging.ts";
import { checkProperties } from "../properties.ts";
import { openGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { duringWork } from "../tables/long-work.ts";
import {
  checkNewIdentifier,
  isNamespace,
  namespaceNotFound,
  objectIdOf,
} from "../tables/naming/object-names.ts";
import { datasetOf } from "../tables/open-data.ts";
import { refuseLost, unlessLost } from "../versions/versions.ts";
import { type ClusterRefreshContext, describeClusterRefresh, refreshOnCluster } from "./cluster-refresh.ts";
import {
  checkDefinition,
  checkResult,
  isView,
  type OutputSchema,
  readDefinition,
  readOutputSchema,
  toProperties,
  type ViewDefinition,
} from "./definition.ts";
import { parseViewQuery, type ViewQuery } from "./query-text.ts";
import { refreshView } from "./refresh.ts";
import { buildSourceQuery, derivedSchema, resultSchema } from "./source.ts";
import { REFRESH_VIEW, type SubmitContext, submitRefresh } from "./submit.ts";
import { readState } from "./view-state.ts";

/**
 * The operations on materialized views.
 *
 * @param createTable creates a table with any properties
 * @param noteWrite gets each view after its refresh
 */
export function createViewOperations(
  context: ClusterRefreshContext & SubmitContext,
  createTable: LanceNamespace["createTable"],
  noteWrite: (view: Identifier) => void,
): Pick<LanceNamespace, "createMaterializedView" | "refreshMaterializedView"> {
  const { jobs, maxUploadBytes } = context;
  const locks = context.createLocks("refreshes");

  describeClusterRefresh(context, REFRESH_VIEW);
  jobs.define(REFRESH_VIEW, async (job, signal) => {
    const location = String(job.spec["location"]);
    // The engine writes to the end what a cancelled refresh has begun, and the next one comes after that.
    const embedded = () =>
      duringWork(context, { id: job.table, location }, (view) =>
        locks.withLocks([location], () => refreshView(context, view, job, signal)),
      );
    // The commit of a cluster's rows is refused after that of another refresh.
    const facts = await (isForCluster(job) ? refreshOnCluster(context, job, signal) : embedded());
    noteWrite(tableOf(context.catalog.known(), job));
    return facts;
  });

  /** Opens the source at a version, and checks its columns against those of a view. */
  async function checkSource(
    query: ViewQuery,
    output: OutputSchema,
    version: bigint | undefined,
    call: Call,
  ): Promise<void> {
    const data = await openGuarded(
      context,
      call,
      { version },
      await requireTable(context, call, query.source),
    );
    try {
      const schema = await data.wait(async () =>
        resultSchema(await buildSourceQuery(data.table, query, output, {})),
      );
      checkResult(schema, output.schema);
    } finally {
      data.release();
    }
  }

  /** Returns the definition with the schema of its query, for a request that leaves the schema to the server. */
  async function withSchema(
    definition: ViewDefinition,
    query: ViewQuery,
    call: Call,
  ): Promise<ViewDefinition> {
    if (definition.outputSchema !== "") return definition;
    const data = await openGuarded(context, call, {}, await requireTable(context, call, query.source));
    try {
      const schema = await data.wait(() => derivedSchema(data.table, query));
      return { ...definition, outputSchema: Buffer.from(schema).toString("base64") };
    } finally {
      data.release();
    }
  }

  return {
    async createMaterializedView(request, call) {
      await checkNewIdentifier(context, call.id);
      const asked = checkDefinition(request);
      const query = parseViewQuery(asked.sourceQuery);
      if (sameIdentifier(query.source, call.id)) {
        throw new LanceError("InvalidInput", `the view cannot be its own source ${joinIdentifier(call.id)}`);
      }
      const definition = await withSchema(asked, query, call);
      const output = await readOutputSchema(definition.outputSchema, maxUploadBytes);
      await checkSource(query, output, undefined, call);
      const properties = toProperties(definition);
      checkProperties(context.tables.properties.maxBytes, call.id, properties);
      const table = create(CreateTableRequestSchema, { mode: CreateTableMode.CREATE, properties });
      const { version = 1n } = await createTable(
        table,
        emptyStream(output),
        copyCall(call, { ownsBody: false }),
      );
      const refresh = () => submitRefresh(context, call.id, {}, callerKey(call));
      const jobId = definition.withNoData ? undefined : await afterChange(refresh);
      return create(CreateMaterializedViewResponseSchema, { version, ...(jobId !== undefined && { jobId }) });
    },
    async refreshMaterializedView({ srcVersion, full, outputLimit, cluster, concurrency }, call) {
      const view = await requireTable(context, call);
      const { sourceQuery, outputSchema } = readDefinition(view);
      if (outputLimit !== undefined) {
        throw new LanceError("InvalidInput", "output_limit applies only to chunker views");
      }
      await refuseLost(context, call);
      const output = await readOutputSchema(outputSchema, maxUploadBytes);
      await checkSource(parseViewQuery(sourceQuery), output, srcVersion, call);
      return create(RefreshMaterializedViewResponseSchema, {
        jobId: await submitRefresh(
          context,
          call.id,
          { srcVersion, full, cluster, workers: concurrency },
          callerKey(call),
        ),
      });
    },
  };
}

async function* emptyStream({ message }: OutputSchema): AsyncIterable<Uint8Array> {
  yield message;
  yield END_OF_STREAM;
}

/** Number of names that are taken from the catalog at a time. */
const NAMES = 1000;

/** The calls on materialized views that only LanceDB's remote clients have. */
export function createViewExtensions(
  context: CatalogDataContext & PageContext,
  dropTable: LanceNamespace["dropTable"],
): Pick<LanceDbExtensions, "listMaterializedViews" | "describeMaterializedView" | "dropMaterializedView"> {
  const { catalog } = context;

  /** Returns the views below a namespace after a name, in their order, up to a number of them. */
  async function viewsAfter(namespace: string, start: string, count: number): Promise<string[]> {
    const views: string[] = [];
    for (let after = start; ; ) {
      const state = await catalog.read();
      const names = state.children(namespace, "table", after, NAMES);
      for (const name of names) {
        const row = state.get(namespace === "" ? name : `${namespace}$${name}`);
        if (row !== undefined && isView(row.properties)) views.push(name);
        if (views.length === count) return views;
      }
      const last = names.at(-1);
      if (last === undefined || names.length < NAMES) return views;
      after = last;
    }
  }

  return {
    async listMaterializedViews({ pageToken, limit }, { id }) {
      const state = await catalog.read();
      if (!isNamespace(state, id)) throw namespaceNotFound(id);
      const count = pageSize(context, limit);
      const views = await viewsAfter(objectIdOf(id), decodeToken("views", pageToken) ?? "", count + 1);
      const page = views.slice(0, count);
      const last = page.at(-1);
      const more = views.length > count && last !== undefined;
      return create(ListMaterializedViewsResponseSchema, {
        views: page,
        ...(more && { pageToken: encodeToken("views", last) }),
      });
    },
    async describeMaterializedView(_request, { id }) {
      const view = await requireTable(context, { id });
      const { sourceQuery, autoRefresh } = readDefinition(view);
      const { manifest } = await unlessLost(context, { id }, readVersion(datasetOf(context, view)));
      const state = readState(manifest);
      const { source } = parseViewQuery(sourceQuery);
      return create(DescribeMaterializedViewResponseSchema, {
        query: sourceQuery,
        sourceTable: source.at(-1) ?? "",
        sourceNamespace: source.slice(0, -1),
        autoRefresh,
        version: manifest.version,
        ...(state !== undefined && { sourceVersion: BigInt(state.sourceVersion) }),
      });
    },
    async dropMaterializedView(_request, call) {
      readDefinition(await requireTable(context, call));
      await dropTable(create(DropTableRequestSchema), call);
      return create(DropMaterializedViewResponseSchema);
    },
  };
}
