import { LanceError } from "../../namespace/errors.ts";
import { readPem } from "../transport/node-transport.ts";
import { type NamespaceImplementation, type Properties, readProperties, readTlsFiles } from "./properties.ts";
import { SILENT_LOG } from "./silent-log.ts";

/** Properties of `connect("grpc", …)`. */
export interface GrpcProperties {
  /** `host:port`, or several separated by commas, which are called in turn. */
  readonly address: string;
  /** Whether the connection is encrypted. Default: true if any of the files below is given. */
  readonly tls?: boolean | string | undefined;
  /** Certificate of this program and its key, in PEM; both or neither. */
  readonly "tls.cert_file"?: string | undefined;
  readonly "tls.key_file"?: string | undefined;
  /** Authorities that may have signed the server's certificate, in PEM. Default: those of Node. */
  readonly "tls.ssl_ca_cert"?: string | undefined;
  /** Name that the server's certificate must have. Default: the host of the address. */
  readonly "tls.server_name"?: string | undefined;
  /** `header.<name>` and `headers.<name>` are headers of every call. */
  readonly [header: `header.${string}` | `headers.${string}`]: string;
}

/** Connects over gRPC, with the first call. It needs Node's HTTP/2. */
export async function openGrpc(properties: Properties): Promise<NamespaceImplementation> {
  const reader = readProperties("grpc", properties);
  const addresses = reader
    .required("address")
    .split(",")
    .map((address) => address.trim());
  const wrong = addresses.find((address) => /^https?:/i.test(address));
  if (wrong !== undefined) {
    const message = `"address" must be a host and a port such as 127.0.0.1:2333, not ${wrong}`;
    throw new LanceError("InvalidInput", message);
  }
  const wanted = reader.flag("tls");
  const files = readTlsFiles(reader);
  const serverName = reader.text("tls.server_name");
  const headers = reader.under("header.", "headers.");
  reader.end();
  const encrypted = wanted ?? Object.keys(files).length > 0;
  const tls = encrypted ? { ...(await readPem(files)), serverName } : undefined;
  const { createGrpcBackend } = await import("../../backends/grpc/index.ts");
  const backend = await createGrpcBackend({
    addresses,
    tls,
    log: SILENT_LOG,
    passHeaders: ["*"],
    // A program decides itself how long it waits, and how many calls it makes.
    maxWaiting: Number.POSITIVE_INFINITY,
    timeLimits: { firstByteMs: 0, idleMs: 0 },
  });
  const uri = `${encrypted ? "https" : "http"}://${addresses[0]}`;
  return {
    ...backend,
    description: addresses.join(","),
    headers,
    // A gateway's port also serves REST, which @lancedb/lancedb speaks.
    lancedb: {
      implementation: "rest",
      properties: {
        uri,
        ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [`headers.${name}`, value])),
      },
    },
  };
}
