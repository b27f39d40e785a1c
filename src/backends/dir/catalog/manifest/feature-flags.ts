import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";

/**
 * Refuses a catalog that needs a feature from a later version of the format; no feature is known yet.
 *
 * @throws LanceError Unsupported
 */
export function checkFeatureFlags({ tableMetadata }: Manifest, role: "reader" | "writer"): void {
  const flags = tableMetadata[`lance.namespace.manifest.${role}_feature_flags`] ?? "0";
  if (!/^\d+$/.test(flags) || BigInt(flags) === 0n) return;
  throw new LanceError(
    "Unsupported",
    `the catalog uses features that this version cannot ${role === "reader" ? "read" : "write"} (${role} flags ${flags}); upgrade the server`,
  );
}
