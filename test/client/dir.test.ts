import { connect } from "../../src/client/index.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { clientSuite } from "./suite.ts";

clientSuite("dir", async () => {
  const { path: root, remove } = await temporaryDirectory();
  const namespace = await connect("dir", { root });
  return {
    namespace,
    async close() {
      await namespace.close();
      await remove();
    },
  };
});
