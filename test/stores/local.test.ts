import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { storeSuite } from "./suite.ts";

storeSuite("a local disk", async () => {
  const { path, remove } = await temporaryDirectory();
  return { store: createLocalStore(path), other: createLocalStore(path), directory: "tables", close: remove };
});
