/** The public exports of the package. */
export { createDirectoryBackend } from "./backends/dir/index.ts";
export type { DirectoryBackendOptions } from "./backends/dir/options.ts";
export { createGrpcBackend, type GrpcBackendOptions } from "./backends/grpc/index.ts";
export { createRestBackend, type RestBackendOptions } from "./backends/rest/index.ts";
export type {
  AwsCredentials,
  CredentialHeaders,
  SignableRequest,
  SignRequest,
  UpstreamAnswer,
  UpstreamCredentials,
  UpstreamIdentity,
  UpstreamIdentityOptions,
} from "./backends/upstream-identity/identity.ts";
export type { WebhookOption } from "./config/options/events.ts";
export type { ServeOptions } from "./config/options/groups.ts";
export type { Gateway, WireOptions } from "./gateway/compose.ts";
export { createGateway, type GatewayOptions } from "./gateway/create-gateway.ts";
export type {
  BackendContext,
  BackendFactory,
  GatewayPlugin,
  PluginContext,
  PluginExport,
} from "./gateway/plugins.ts";
export { startGateway } from "./gateway/start-gateway.ts";
export { LanceNamespaceService } from "./gen/lance/namespace/v1/service_pb.ts";
export { type Call, type Credentials, createCall, type Protocol } from "./namespace/call/call.ts";
export {
  ERROR_TABLE,
  type ErrorEntry,
  type ErrorName,
  isLanceError,
  LanceError,
} from "./namespace/errors.ts";
export type { NoteDecision, UpstreamDecision } from "./namespace/figures.ts";
export { type Identifier, joinIdentifier, parseIdentifier } from "./namespace/identifier.ts";
export type { Backend, LanceDbExtensions, LanceNamespace, Operation } from "./namespace/lance-namespace.ts";
export { isRead } from "./namespace/operations/method-facts.ts";
export { createMetrics, type Metrics } from "./observability/metrics/metrics.ts";
export {
  type Interceptor,
  interceptOperations,
  isStream,
  type Next,
  type OperationInterceptors,
  type OperationName,
  type OperationRequest,
  type OperationResponse,
} from "./pipeline/call/interceptor.ts";
