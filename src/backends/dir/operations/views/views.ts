import { create } from "@bufbuild/protobuf";
import { END_OF_STREAM } from "../../../../arrow/ipc/stream.ts";
import { CreateTableMode, CreateTableRequestSchema } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import {
  CreateMaterializedViewResponseSchema,
  RefreshMaterializedViewResponseSchema,
} from "../../../../gen/lance/namespace/v1/view_pb.ts";
import { type Call, copyCall } from "../../../../namespace/call/call.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier, sameIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { isForCluster } from "../../jobs/job.ts";
import { tableOf } from "../jobs/jobs.ts";
import { checkProperties } from "../properties.ts";
import { openGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { duringWork } from "../tables/long-work.ts";
import { checkNewIdentifier } from "../tables/naming/object-names.ts";
import { refuseLost } from "../versions/versions.ts";
import { type ClusterRefreshContext, describeClusterRefresh, refreshOnCluster } from "./cluster-refresh.ts";
import {
  checkDefinition,
  checkResult,
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
