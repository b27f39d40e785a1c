import { create } from "@bufbuild/protobuf";
import {
  type DeclareTableResponse,
  DeclareTableResponseSchema,
  RegisterTableMode,
  RegisterTableResponseSchema,
} from "../../../../gen/lance/namespace/v1/table_pb.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { type ChangeContext, refuseWhileRemoved } from "../../batch/journal.ts";
import { resolveAbandoned } from "../../batch/resolve.ts";
import { runBatch } from "../../batch/run.ts";
import { checkNewLocation, isRootDirectory, rootLocation } from "../../catalog/base/location-names.ts";
import type { CatalogContext } from "../../catalog/catalog-context.ts";
import type { Draft } from "../../catalog/state/draft.ts";
import type { CatalogView } from "../../catalog/state/view.ts";
import type { StorageOptions } from "../../stores/storage-options.ts";
import type { DirectAccessContext } from "../context.ts";
import { checkTableProperties } from "../properties.ts";
import { credentialsFor, directAccess } from "./direct-access.ts";
import {
  checkNewIdentifier,
  isUnlistedTable,
  objectIdOf,
  requireParent,
  tableExists,
} from "./naming/object-names.ts";
import { checkFree, checkHasOneTable, checkOutsideOfTables, planClaim } from "./naming/plan-claim.ts";
import { takeName } from "./naming/take-name.ts";

/** The operations that add a table's name to the catalog without data. */
export function createDeclareOperations(
  context: ChangeContext & DirectAccessContext,
): Pick<LanceNamespace, "declareTable" | "registerTable"> {
  const { catalog, journal, layout } = context;

  return {
    async declareTable(request, call) {
      const { location: wanted, properties } = request;
      const { id } = call;
      await checkNewIdentifier(context, id);
      checkTableProperties(context, id, properties);
      const claim = await planClaim(context, catalog.read, id, properties, wanted || undefined);
      const vend = (location: string) => credentialsFor(context, layout.pathOf(location), request, call);
      // Before the name is taken, so that a failure leaves nothing behind.
      await vend(claim.location);
      const location = await takeName(context, claim);
      return declaredTable(context, location, properties, await vend(location));
    },
    async registerTable({ location, mode, properties }, { id, signal }) {
      await checkNewIdentifier(context, id);
      checkTableProperties(context, id, properties);
      checkNewLocation(location);
      await layout.checkNoEscape(location);
      await checkOutsideOfTables(context, location);
      await resolveAbandoned(context);
      await refuseWhileRemoved(journal, location);
      const state = await catalog.read();
      const unlisted = await isUnlistedTable(context, state, id);
      const checkName = (view: CatalogView) => {
        requireParent(view, id);
        const existing = view.get(objectIdOf(id));
        const replaces = mode === RegisterTableMode.OVERWRITE && existing?.objectType === "table";
        if (existing !== undefined && !replaces) throw tableExists(id);
        if (existing === undefined && unlisted && location !== rootLocation(id)) throw tableExists(id);
        if (existing?.location !== location) checkFree(view, location, existing?.location);
      };
      checkName(state);
      await checkHasOneTable(context, location);
      const register = (draft: Draft) => {
        checkName(draft);
        draft.put({ objectId: objectIdOf(id), objectType: "table", location, properties });
      };
      const locations = isRootDirectory(location) ? [location] : [];
      await runBatch(context, { changes: [register], departing: "keep", locations }, signal);
      return create(RegisterTableResponseSchema, { location, properties });
    },
  };
}

/** Returns the answer to a declaration. */
export function declaredTable(
  context: Pick<CatalogContext, "layout"> & DirectAccessContext,
  location: string,
  properties: Readonly<Record<string, string>>,
  credentials?: StorageOptions,
): DeclareTableResponse {
  return create(DeclareTableResponseSchema, {
    location: context.layout.pathOf(location),
    properties: { ...properties },
    ...directAccess(context, properties, credentials),
  });
}
