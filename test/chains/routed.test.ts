import assert from "node:assert/strict";
import { pino } from "pino";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { createService } from "../../src/pipeline/create-service.ts";
import { contractSuite } from "../contract/suite.ts";
import { createServiceCaller } from "../support/caller.ts";
import { temporaryDirectory } from "../support/directory.ts";

const limits = { maxUploadBytes: 2 ** 26 };
const log = pino({ level: "silent" });

contractSuite("one of two databases behind one endpoint", {
  async open() {
    const { path, remove } = await temporaryDirectory();
    const [used, other] = await Promise.all(
      ["used", "other"].map((name) => createDirectoryBackend({ root: `${path}/${name}`, log })),
    );
    assert.ok(used && other);
    const databases = new Map([
      ["used", { backend: used, limits }],
      ["other", { backend: other, limits }],
    ]);
    const service = createService({ databases, routes: [{ by: "header" }] });
    const clientOf = (database: string) => createServiceCaller(service, { "x-service-database": database });
    return {
      client: clientOf("used"),
      async close() {
        const { namespaces } = await clientOf("other").listNamespaces();
        await Promise.all([used.close(), other.close()]);
        await remove();
        assert.deepEqual(namespaces, [], "the other database has nothing of it");
      },
    };
  },
});
