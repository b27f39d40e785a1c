import { create } from "@bufbuild/protobuf";
import { type ServiceError, status } from "@grpc/grpc-js";
import type { Logger } from "pino";
import {
  Health,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from "../../gen/grpc/health/v1/health_pb.ts";
import type { Channels } from "./channels.ts";
import { definitionOf } from "./definition.ts";

const TIMEOUT_MS = 5_000;

/** Whether the upstream can be reached and does not say that it cannot serve; it need not have grpc.health.v1. */
export async function isServing(channels: Channels, log: Logger): Promise<boolean> {
  const { path, requestSerialize, responseDeserialize } = definitionOf(Health.method.check);
  try {
    const client = await channels.pick();
    const answer = await new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        create(HealthCheckRequestSchema),
        { deadline: Date.now() + TIMEOUT_MS },
        (error, response) => (error === null ? resolve(response) : reject(error)),
      );
    });
    return (answer as HealthCheckResponse).status === Status.SERVING;
  } catch (error) {
    if ((error as Partial<ServiceError>).code === status.UNIMPLEMENTED) return true;
    log.warn({ err: error }, "the upstream catalog cannot be reached");
    return false;
  }
}
