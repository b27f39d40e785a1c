import { isDeepStrictEqual } from "node:util";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { columnFacts } from "../../format/files/manifest.ts";

/** Returns the name of a part of a version that the next one has changed, of those that drivers leave as they are. */
export function changedPart(before: Manifest, next: Manifest): string | undefined {
  return Object.entries(KEPT).find(([, partOf]) => !isDeepStrictEqual(partOf(before), partOf(next)))?.[0];
}

const KEPT: Readonly<Record<string, (manifest: Manifest) => unknown>> = {
  fields: ({ fields }) => columnFacts(fields),
  metadata: ({ schemaMetadata, tableMetadata }) => [textsOf(schemaMetadata), tableMetadata],
  configuration: ({ config }) => config,
  "directories outside": ({ basePaths }) =>
    basePaths.map(({ id, name, isDatasetRoot, path }) => [id, name, isDatasetRoot, path]).sort(),
  branch: ({ branch }) => branch,
};

function textsOf(bytes: Readonly<Record<string, Uint8Array>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(bytes).map(([name, value]) => [name, Buffer.from(value).toString("hex")]),
  );
}
