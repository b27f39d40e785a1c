import { callOnce } from "../../backends/resilience/resilience.ts";
import { createHandler } from "../../backends/rest/handlers.ts";
import type { UpstreamDialect } from "../../backends/rest/options.ts";
import type { UpstreamTransport } from "../../backends/rest/transport/transport.ts";
import { createUpstreamCaller } from "../../backends/rest/upstream-call.ts";
import { createHeaderPolicy } from "../../backends/upstream-identity/headers.ts";
import { passthroughIdentity } from "../../backends/upstream-identity/identity.ts";
import { UPSTREAM_FORMS } from "../../dialects/upstream.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import { createClientBindings } from "../../transcode/client-binding.ts";
import {
  type NamespaceImplementation,
  type Properties,
  readProperties,
  readTlsFiles,
  type TlsFiles,
} from "./properties.ts";

/** Properties of `connect("rest", …)`. */
export interface RestProperties {
  /** Base URI of the REST API, without `/v1`, for example `https://catalog.example.com/lance`. */
  readonly uri: string;
  /** Delimiter between the names of an identifier in paths. Default: `$`. */
  readonly delimiter?: string | undefined;
  /** Kind of server: `specification`, or `lancedb` for LanceDB's own service. Default: `specification`. */
  readonly dialect?: UpstreamDialect | undefined;
  /** Certificate of this program and its key, in PEM; both or neither. Not in browsers. */
  readonly "tls.cert_file"?: string | undefined;
  readonly "tls.key_file"?: string | undefined;
  /** Authorities that may have signed the server's certificate, in PEM. Not in browsers. */
  readonly "tls.ssl_ca_cert"?: string | undefined;
  /** `header.<name>` and `headers.<name>` are headers of every call, for example `headers.x-api-key`. */
  readonly [header: `header.${string}` | `headers.${string}`]: string;
}

/** Creates the transport that sends the requests. */
export type OpenTransport = (uri: string, tls: TlsFiles) => Promise<UpstreamTransport>;

/** Properties of other libraries that have no effect here. */
const OTHERS = ["tls.reload_interval_seconds", "ops_metrics_enabled"];

/** Connects over REST. */
export async function openRest(
  properties: Properties,
  openTransport: OpenTransport,
): Promise<NamespaceImplementation> {
  const reader = readProperties("rest", properties);
  const uri = reader.required("uri");
  const delimiter = reader.text("delimiter") ?? "$";
  const dialect = reader.text("dialect") ?? "specification";
  const headers = reader.under("header.", "headers.");
  const files = readTlsFiles(reader);
  if (reader.flag("tls.assert_hostname") === false) {
    throw new LanceError("Unsupported", "the name in a server's certificate is always checked");
  }
  reader.ignore(...OTHERS);
  reader.end();
  const form = (UPSTREAM_FORMS as Readonly<Record<string, (typeof UPSTREAM_FORMS)["specification"]>>)[
    dialect
  ];
  if (form === undefined) {
    const known = Object.keys(UPSTREAM_FORMS).join(", ");
    throw new LanceError("InvalidInput", `"dialect" must be one of ${known}, not ${JSON.stringify(dialect)}`);
  }
  checkAddress(uri);
  const transport = await openTransport(uri, files);
  const policy = createHeaderPolicy({ passHeaders: ["*"], returnHeaders: ["*", "set-cookie"] });
  const upstream = callOnce(transport);
  const callUpstream = createUpstreamCaller({ form, upstream, policy, identity: passthroughIdentity });
  const handlers = [...createClientBindings(LanceNamespaceService.methods, form)].map(([method, binding]) => [
    method.localName,
    createHandler(binding, { delimiter, callUpstream, policy }),
  ]);
  return {
    name: "rest",
    description: uri,
    headers,
    operations: Object.fromEntries(handlers) as LanceNamespace,
    lancedb: { implementation: "rest", properties: restOnly(properties) },
    close: () => transport.close(),
  };
}

function checkAddress(uri: string): void {
  const url = URL.canParse(uri) ? new URL(uri) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return;
  throw new LanceError("InvalidInput", `"uri" must be an address such as http://127.0.0.1:2333, not ${uri}`);
}

/** Returns the properties as other libraries know them. */
function restOnly(properties: Properties): Record<string, string> {
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, value]) =>
      value === undefined || name === "dialect" ? [] : [[name, String(value)]],
    ),
  );
}
