import { copyFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { pythonInterpreter } from "../../../scripts/python-environment.ts";
import type { CatalogServer } from "../../support/catalogs/catalog-server.ts";
import { startIcebergServer } from "../../support/catalogs/iceberg-server.ts";
import { startUnityServer } from "../../support/catalogs/unity-server.ts";
import { startGlueAccount } from "../support/glue.ts";
import { goPluginsFolder } from "../support/go-plugins.ts";
import { grpcurlFolder } from "../support/grpcurl.ts";
import { startAzure, startS3 } from "../support/store-servers.ts";
import { ROOT } from "../support/tools.ts";
import type { PageOptions } from "./session.ts";

/** Opens what a page takes for granted. */
export type Ground = (onTestFinished: (close: () => Promise<void>) => void) => Promise<PageOptions>;

const python = () => dirname(pythonInterpreter());

/** Python with the clients; the rest as the page needs it. */
export function withPython(options: PageOptions = {}): Ground {
  return async () => ({ ...options, path: [python()] });
}

export function withGrpcurl(options: PageOptions = {}): Ground {
  return async () => ({ ...options, path: [python(), await grpcurlFolder()] });
}

export const withGo: Ground = async () => ({
  path: [python(), await grpcurlFolder(), await goPluginsFolder()],
});

/** Opens an S3 server, with the keys and the bucket that the page names. */
export const withS3: Ground = async (onTestFinished) => {
  const server = await startS3();
  onTestFinished(server.close);
  return { path: [python()], ports: { 9000: server.port } };
};

export const withAzure: Ground = async (onTestFinished) => {
  const server = await startAzure();
  onTestFinished(server.close);
  return { path: [python()], ports: { 10000: server.port } };
};

export const withGlue: Ground = async (onTestFinished) => {
  const account = await startGlueAccount();
  onTestFinished(account.close);
  const { port } = new URL(account.endpoint);
  return { path: [python(), await grpcurlFolder()], ports: { 5000: Number(port) } };
};

/** Opens a simulation of a catalog, at the port that the page names. */
function withStandIn(port: number, start: () => Promise<CatalogServer>, before = ""): Ground {
  return async (onTestFinished) => {
    const server = await start();
    onTestFinished(server.close);
    const ports = { [port]: Number(new URL(server.url).port) };
    return { path: [python(), await grpcurlFolder()], ports, before };
  };
}

/** A gateway in front of `lance-data`. */
const GATEWAY = `
\`\`\`sh
lance-gateway serve --root ./lance-data
\`\`\`
`;

const sh = (...lines: readonly string[]) => `\n\`\`\`sh\n${lines.join("\n")}\n\`\`\`\n`;

const PEOPLE_FILE = "printf 'name,age\\nAda,36\\nGrace,28\\n' > people.csv";

const KEYS = sh("lance-gateway keys create --file keys.json --name etl --role writer > etl.key");

const CERTIFICATE = sh(
  "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN=localhost -keyout key.pem -out cert.pem",
  "cp cert.pem clients.pem",
);

/** Files of rows in the formats that the pages import, made on a directory that nobody serves. */
const FILES = sh(
  PEOPLE_FILE,
  "cp people.csv visits.csv",
  `printf '{"name":"Ada"}\\n' > events.jsonl`,
  "lance-gateway import people.csv people --root scratch",
  "lance-gateway export people people.parquet --root scratch",
);

const ROWS = "lance-gateway export people rows.arrows --root ./lance-data";

/** A gateway with a namespace and files for it. */
const FOR_COMMANDS = `${FILES}${GATEWAY}${sh(
  "export LANCE_GATEWAY_URI=http://localhost:2333",
  "lance-gateway create team",
  "lance-gateway import events.jsonl team/events",
  "unset LANCE_GATEWAY_URI",
)}`;

const WITH_PEOPLE = sh(
  PEOPLE_FILE,
  "lance-gateway create team --root ./lance-data",
  "lance-gateway import people.csv team/people --root ./lance-data",
);

const WITH_ROWS = `${sh(PEOPLE_FILE, "lance-gateway import people.csv people --root ./lance-data", ROWS)}${GATEWAY}`;

const WITH_ORDERS = `${sh(
  "lance-gateway create sales --root ./lance-data",
  "printf 'id\\n1\\n2\\n' > orders.csv",
  "lance-gateway import orders.csv sales/orders --root ./lance-data",
)}${GATEWAY}`;

const WITH_ADMIN_PORT = `
\`\`\`sh
lance-gateway serve --root ./lance-data --workers 2 --admin-port 9464
\`\`\`
`;

const A_PACKAGE = `
\`\`\`js
// node_modules/my-package/index.js
export default { interceptors: [] };
\`\`\`
`;

const EVENT_SECRETS = sh(
  "export SEARCH_TOKEN=token",
  'echo "whsec_$(openssl rand -base64 32)" > search.secret',
);

/** Pages whose blocks need something in front of the first one. */
export const GROUNDS: Readonly<Record<string, Ground>> = {
  "README.md": withGrpcurl({
    before: `${CERTIFICATE}${FILES}${GATEWAY}`,
    prepare: (folder) => symlinkSync(join(ROOT, "proto"), join(folder, "proto")),
  }),
  "docs/audit.md": withPython({ before: KEYS }),
  "docs/catalogs.md": withPython({ before: sh("echo token > polaris.token"), apart: true }),
  "docs/cli.md": withPython({ before: FOR_COMMANDS }),
  "docs/client.md": withPython({ before: FOR_COMMANDS }),
  "docs/console.md": withPython({ before: `${CERTIFICATE}${GATEWAY}` }),
  "docs/engines.md": withPython({ before: WITH_ORDERS }),
  "docs/events.md": withPython({ before: EVENT_SECRETS, apart: true }),
  "docs/extending.md": withPython({
    before: A_PACKAGE,
    prepare: (folder) =>
      copyFileSync(join(ROOT, "examples", "closed-at-night.ts"), join(folder, "closed-at-night.ts")),
    apart: true,
  }),
  "docs/idempotency.md": withPython({ before: WITH_ROWS }),
  "docs/limits.md": withPython({ before: sh("echo secret > redis.password") }),
  "docs/maintenance.md": withPython({ before: WITH_PEOPLE }),
  "docs/observability.md": withPython({ before: WITH_ADMIN_PORT }),
  "docs/production.md": withPython({ before: `${CERTIFICATE}${KEYS}` }),
  "docs/security.md": withGrpcurl({ before: CERTIFICATE, apart: true }),
  "docs/upstreams.md": withPython({ apart: true }),
  "docs/tutorials/grpc.md": withGo,
  "docs/tutorials/several-databases.md": withGrpcurl(),
  "docs/tutorials/sidecar.md": withGrpcurl(),
  "docs/how-to/azure.md": withAzure,
  "docs/how-to/glue.md": withGlue,
  "docs/how-to/lakekeeper.md": withStandIn(8181, () => startIcebergServer("lakekeeper")),
  "docs/how-to/polaris.md": withStandIn(
    8181,
    () => startIcebergServer("polaris"),
    sh("echo secret > polaris.secret"),
  ),
  "docs/how-to/unity.md": withStandIn(8080, startUnityServer),
  "docs/how-to/s3.md": withS3,
  "docs/how-to/vending.md": withS3,
};
