import { create } from "@bufbuild/protobuf";
import {
  type CloneTableRequest,
  CloneTableResponseSchema,
} from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import { untilAborted } from "../../concurrency/wait.ts";
import type { FoundTable } from "../../data/table-source.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { copyVersion } from "../../format/versions/copy-version.ts";
import { readTag, tagNotFound } from "../../format/versions/refs/refs.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { noteOwnVersion } from "../../format/versions/version-ledger.ts";
import type { CatalogDataContext } from "../context.ts";
import { createApart } from "../rows/create-new.ts";
import { requireTable } from "./find-table.ts";
import { duringWork } from "./long-work.ts";
import { planPrivateClaim } from "./naming/plan-claim.ts";
import { tableAt } from "./naming/table-at.ts";
import { datasetOf, withData } from "./open-data.ts";

/** The operation that makes a table from a version of another one; see docs/adr/0009. */
export function createCloneOperations(context: CatalogDataContext): Pick<LanceDbExtensions, "cloneTable"> {
  const { store } = context;
  return {
    async cloneTable(request, { id, signal }) {
      const claim = await planPrivateClaim(context, id);
      const sourceId = await tableAt(context, request.sourceLocation);
      if (sourceId === undefined) throw sourceNotFound(request.sourceLocation);
      const { location } = await requireTable(context, { id: sourceId });
      const { path, version } = await untilAborted(
        duringWork(context, { id: sourceId, location }, async (source) => {
          const { dataset, file } = await readSource(context, source, request);
          const { version } = file.manifest;
          const stage = async (to: string) => {
            const target: DatasetRef = { store, root: store.keyOf(to) };
            await copyVersion(dataset, file, target, { mayLink: request.isShallow ?? false, signal });
            return Number(version);
          };
          // Pruning keeps a version that is in use.
          return withData(context, source, { version, branch: dataset.branch }, () =>
            createApart(context, claim, { stage }),
          );
        }),
        signal,
      );
      noteOwnVersion({ store, root: store.keyOf(path) }, BigInt(version));
      return create(CloneTableResponseSchema, { location: path, version: BigInt(version) });
    },
  };
}

/** Reads the version that a request names. */
async function readSource(
  context: CatalogDataContext,
  source: FoundTable,
  { sourceVersion, sourceTag }: CloneTableRequest,
): Promise<{ readonly dataset: DatasetRef; readonly file: ManifestFile }> {
  if (sourceVersion !== undefined && sourceTag !== undefined) {
    throw new LanceError("InvalidInput", "Cannot specify both source_version and source_tag");
  }
  const main = datasetOf(context, source);
  if (sourceTag === undefined) return { dataset: main, file: await readVersion(main, sourceVersion) };
  const tag = await readTag(main, sourceTag);
  if (tag === undefined) throw tagNotFound(sourceTag);
  const dataset = datasetOf(context, source, tag.branch);
  return { dataset, file: await readVersion(dataset, tag.version) };
}

function sourceNotFound(place: string): LanceError {
  return new LanceError(
    "TableNotFound",
    `Table '${place}' was not found: source_location is not that of a table here`,
  );
}
