import { create } from "@bufbuild/protobuf";
import { formatFieldPath, parseFieldPath } from "../../../../arrow/field-path.ts";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { type StringMap, StringMapSchema } from "../../../../gen/lance/namespace/v1/common_pb.ts";
import {
  type UpdateFieldMetadataEntry,
  UpdateFieldMetadataResponseSchema,
  UpdateTableSchemaMetadataResponseSchema,
} from "../../../../gen/lance/namespace/v1/schema_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { firstRepeated } from "../../../../runtime/collections.ts";
import { ITEMS_PER_STEP, inSlices, type Steps } from "../../../../runtime/pace.ts";
import { cancellationOf } from "../../concurrency/wait.ts";
import type { DataContext } from "../../data/data-context.ts";
import { type CommittedVersion, commitMetadata } from "../../format/changes/commit.ts";
import type { MapChange, MetadataChange } from "../../format/changes/metadata-change.ts";
import { createFieldFinder, metadataText } from "../../format/files/manifest.ts";
import { refuseLost, requireDataset } from "../versions/versions.ts";

/** The operations on the metadata of fields and schemas. */
export function createMetadataOperations(
  context: DataContext,
): Pick<LanceNamespace, "updateFieldMetadata" | "updateTableSchemaMetadata"> {
  async function commit(
    call: Call,
    branch: string | undefined,
    change: MetadataChange,
  ): Promise<CommittedVersion> {
    const { signal } = call;
    const dataset = await requireDataset(context, call, branch);
    try {
      return await commitMetadata(dataset, change, { signal });
    } catch (error) {
      if (signal.aborted) throw cancellationOf(signal);
      if (isLanceError(error, "TableVersionNotFound")) {
        await refuseLost(context, call);
        throw new LanceError("TableNotFound", "the table has no data");
      }
      throw error;
    }
  }

  return {
    async updateFieldMetadata({ branch, updates }, call) {
      const fieldMetadata = checkUpdates(updates);
      const { version, manifest } = await commit(call, branch, { fieldMetadata });
      const fields = await inSlices(metadataOf(manifest, Object.keys(fieldMetadata)));
      return create(UpdateFieldMetadataResponseSchema, { version, fields });
    },
    async updateTableSchemaMetadata({ branch, metadata }, call) {
      // As in the public directory implementation, entries that the request does not name stay.
      const { manifest, transactionId } = await commit(call, branch, {
        schemaMetadata: { entries: metadata },
      });
      return create(UpdateTableSchemaMetadataResponseSchema, {
        metadata: metadataText(manifest.schemaMetadata),
        transactionId,
      });
    },
  };
}

/** Returns the metadata of fields by their paths. */
function* metadataOf(manifest: Manifest, paths: readonly string[]): Steps<Record<string, StringMap>> {
  const findField = createFieldFinder(manifest);
  const found: [string, StringMap][] = [];
  for (const path of paths) {
    if (found.length % ITEMS_PER_STEP === 0) yield;
    found.push([path, create(StringMapSchema, { entries: metadataText(findField(path).metadata) })]);
  }
  return Object.fromEntries(found);
}

function checkUpdates(updates: readonly UpdateFieldMetadataEntry[]): Record<string, MapChange> {
  if (updates.length === 0) throw new LanceError("InvalidInput", "updates must not be empty");
  const changes = new Map<string, MapChange>();
  const twice = firstRepeated(updates.map(({ path }) => formatFieldPath(parseFieldPath(path))));
  if (twice !== undefined)
    throw new LanceError("InvalidInput", `updates names ${JSON.stringify(twice)} twice`);
  for (const { path, metadata, replace = false } of updates) {
    const entries = Object.entries(metadata).map(([key, { value }]) => [key, value ?? null] as const);
    changes.set(path, { entries: Object.fromEntries(entries), replace });
  }
  return Object.fromEntries(changes);
}
