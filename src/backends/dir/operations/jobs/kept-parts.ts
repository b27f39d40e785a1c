import { isDeepStrictEqual } from "node:util";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { columnFacts } from "../../format/files/manifest.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { readVersionIfThere } from "../../format/versions/version-files.ts";
import type { DriverCommit } from "../../jobs/ray/cluster.ts";

/** Returns the name of a part of a version that the next one has changed, of those that drivers leave as they are. */
export function changedPart(before: Manifest, next: Manifest): string | undefined {
  return Object.entries(KEPT).find(([, partOf]) => !isDeepStrictEqual(partOf(before), partOf(next)))?.[0];
}

/** Reads the version that a driver has read; returns why it cannot follow that one if it is gone or has other columns. */
export async function readBase({ dataset, next, readVersion }: DriverCommit): Promise<ManifestFile | string> {
  const read = await readVersionIfThere(dataset, readVersion);
  if (read === undefined) return `the version ${readVersion}, which its driver has read, is gone`;
  const isSame = isDeepStrictEqual(columnFacts(read.manifest.fields), columnFacts(next.manifest.fields));
  return isSame ? read : "the columns of the table have changed meanwhile";
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
