import { afterAll, beforeAll } from "vitest";
import { connect, type Namespace } from "../../../src/client/index.ts";
import { runCommand } from "../../support/run-command.ts";
import { type DirectoryServer, startDirectoryServer } from "../../support/server.ts";

/** A catalog that a suite reaches by the client and by the command line. */
export interface Catalog {
  readonly ns: Namespace;
  /** Directory of the catalog, which is also the place for files of the suite. */
  readonly root: string;
  /** Runs a command and returns what it prints. */
  run(...args: readonly string[]): Promise<string>;
}

/** Serves an empty catalog during the suite that calls this; it is there as soon as the first test begins. */
export function serveCatalog(): Catalog {
  let server: DirectoryServer;
  let ns: Namespace;
  const uri = () => `http://127.0.0.1:${server.port}`;
  beforeAll(async () => {
    server = await startDirectoryServer();
    ns = await connect("rest", { uri: uri() });
  });
  afterAll(async () => {
    await ns.close();
    await server.close();
  });
  return {
    get ns() {
      return ns;
    },
    get root() {
      return server.root;
    },
    run: (...args) => runCommand([...args, "--uri", uri()], { XDG_CONFIG_HOME: server.root }),
  };
}
