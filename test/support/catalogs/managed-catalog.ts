import { pino } from "pino";
import type { TestContext } from "vitest";
import { createComposedBackend } from "../../../src/backends/composed/index.ts";
import type { ComposedBackendOptions } from "../../../src/backends/composed/options.ts";
import { createLocalStore } from "../../../src/backends/dir/format/local/local-store.ts";
import { listTree } from "../../../src/backends/dir/format/storage.ts";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import type { TableVersion } from "../../../src/gen/lance/namespace/v1/version_pb.ts";
import type { Backend, LanceNamespace } from "../../../src/namespace/lance-namespace.ts";
import { createService } from "../../../src/pipeline/create-service.ts";
import { createCaller, createServiceCaller } from "../caller.ts";
import { temporaryDirectory } from "../directory.ts";

const limits = { maxUploadBytes: 2 ** 26 };

/**
 * Opens a catalog that commits the versions of its tables and answers with no other versions, and a backend that serves the rows. It knows the
 * versions that were committed through it alone, as catalogs do that have them in a database.
 *
 * @param changed replaces operations of the catalog. Default: none
 */
export async function openManaged(
  t: Pick<TestContext, "onTestFinished">,
  changed: (operations: LanceNamespace) => Partial<LanceNamespace> = () => ({}),
  options: Partial<ComposedBackendOptions> = {},
) {
  const log = pino({ level: "silent" });
  const { path: root, remove } = await temporaryDirectory();
  const directory = await createDirectoryBackend({ root, log, managedVersioning: true });
  const own = directory.operations as LanceNamespace;
  /** Paths of the manifests of all versions that were committed. */
  const committed = new Set<string>();
  const isCommitted = (version: TableVersion | undefined) =>
    version !== undefined && committed.has(version.manifestPath);
  const operations: LanceNamespace = {
    ...own,
    async createTableVersion(request, call) {
      const answer = await own.createTableVersion(request, call);
      committed.add(answer.version?.manifestPath ?? "");
      return answer;
    },
    async listTableVersions(request, call) {
      const answer = await own.listTableVersions({ ...request, limit: 1_000 }, call);
      const versions = answer.versions.filter(isCommitted).slice(0, request.limit);
      return { ...answer, versions };
    },
  };
  const catalog: Backend = {
    name: "catalog",
    operations: { ...operations, ...changed(operations) },
    ready: async () => true,
    close: async () => {},
  };
  const open = () => createComposedBackend(catalog, { log, allowedLocations: [root], ...options });
  const backend = open();
  const others: Backend[] = [];
  t.onTestFinished(async () => {
    for (const each of [backend, ...others]) await each.close();
    await directory.close();
    await remove();
  });
  const store = createLocalStore(root);
  /** Returns the paths of all files whose names are those of versions or of staged manifests. */
  const manifests = async (pattern: RegExp) =>
    (await listTree(store, "")).filter((path) => path.includes(".lance/") && pattern.test(path));
  const service = createService({ databases: new Map([[undefined, { backend, limits }]]) });
  return {
    root,
    store,
    committed,
    client: createCaller({ backend, limits }),
    as: (token: string) => createServiceCaller(service, { authorization: `Bearer ${token}` }),
    /** Opens another gateway before the same catalog. */
    another() {
      const other = open();
      others.push(other);
      return createCaller({ backend: other, limits });
    },
    upstream: createCaller({ backend: directory, limits }),
    backend,
    /** Returns the versions in the storage that the catalog has not committed. */
    async uncommitted() {
      const paths = await manifests(/\/_versions\/\d+\.manifest$/);
      return paths.filter((path) => !committed.has(`${root}/${path}`.slice(1)));
    },
    staged: () => manifests(/\/_versions\/\d+\.manifest-/),
  };
}
