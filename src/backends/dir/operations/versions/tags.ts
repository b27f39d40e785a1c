import { create } from "@bufbuild/protobuf";
import {
  CreateTableTagResponseSchema,
  DeleteTableTagResponseSchema,
  GetTableTagVersionResponseSchema,
  ListTableTagsResponseSchema,
  TagContentsSchema,
  UpdateTableTagResponseSchema,
} from "../../../../gen/lance/namespace/v1/tag_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { DataContext } from "../../data/data-context.ts";
import {
  createTag,
  deleteTag,
  listTags,
  readTag,
  type Tag,
  type TagTarget,
  tagNotFound,
  updateTag,
} from "../../format/versions/refs/refs.ts";
import type { PageContext } from "../context.ts";
import { pageOfNames } from "../paging.ts";
import { REFERENCES } from "./refuse-referred.ts";
import { refuseLost, requireDataset, unlessLost } from "./versions.ts";

type Operations = Pick<
  LanceNamespace,
  "listTableTags" | "getTableTagVersion" | "createTableTag" | "updateTableTag" | "deleteTableTag"
>;

/** The operations on tags: names for versions of a table, on any of its branches. */
export function createTagOperations(context: DataContext & PageContext): Operations {
  const locks = context.createLocks(REFERENCES);
  return {
    async listTableTags(request, call) {
      const tags = await listTags(await requireDataset(context, call));
      if (tags.size === 0) await refuseLost(context, call);
      const { entries, ...page } = pageOfNames(context, "tags", tags, request);
      return create(ListTableTagsResponseSchema, {
        tags: Object.fromEntries(entries.map(([name, tag]) => [name, toTagContents(tag)])),
        ...page,
      });
    },
    async getTableTagVersion({ tag: name }, call) {
      const tag = await readTag(await requireDataset(context, call), name);
      if (tag === undefined) throw tagNotFound(name);
      const { version, branch } = tag;
      return create(GetTableTagVersionResponseSchema, { version, ...(branch !== undefined && { branch }) });
    },
    async createTableTag({ tag, ...target }, call) {
      const dataset = await requireDataset(context, call);
      const wanted = checkTarget(target);
      await locks.withLocks([joinIdentifier(call.id)], () =>
        unlessLost(context, call, createTag(dataset, tag, wanted)),
      );
      return create(CreateTableTagResponseSchema);
    },
    async updateTableTag({ tag, ...target }, call) {
      const dataset = await requireDataset(context, call);
      const wanted = checkTarget(target);
      await locks.withLocks([joinIdentifier(call.id)], () => updateTag(dataset, tag, wanted));
      return create(UpdateTableTagResponseSchema);
    },
    async deleteTableTag({ tag }, call) {
      await deleteTag(await requireDataset(context, call), tag);
      return create(DeleteTableTagResponseSchema);
    },
  };
}

function checkTarget({ version, branch }: TagTarget): TagTarget {
  if (version > 0n) return { version, branch };
  throw new LanceError("InvalidInput", "a tag requires a positive version number");
}

function toTagContents({ version, branch, manifestSize }: Tag) {
  return create(TagContentsSchema, {
    version,
    manifestSize: BigInt(manifestSize),
    ...(branch !== undefined && { branch }),
  });
}
