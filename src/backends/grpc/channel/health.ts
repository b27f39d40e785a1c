import { create } from "@bufbuild/protobuf";
import { type ServiceError, status } from "@grpc/grpc-js";
import {
  Health,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.ts";
import type { OutageLog } from "../../resilience/outage-log.ts";
import type { Endpoint } from "../../resilience/resilience.ts";
import { definitionOf } from "../method-definition.ts";
import type { Channel } from "./channels.ts";

const TIMEOUT_MS = 5_000;

/** Whether any server of the upstream can answer. */
export async function isServing(servers: readonly Endpoint<Channel>[], outages: OutageLog): Promise<boolean> {
  return (await Promise.all(servers.map((server) => serves(server, outages)))).some(Boolean);
}

/** Whether a server can be reached and does not report that it cannot serve; it may lack grpc.health.v1. */
async function serves({ target: channel, name }: Endpoint<Channel>, outages: OutageLog): Promise<boolean> {
  const { path, requestSerialize, responseDeserialize } = definitionOf(Health.method.check);
  try {
    const client = await channel.connected();
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
    outages.answered(name);
    return (answer as HealthCheckResponse).status === Status.SERVING;
  } catch (error) {
    if ((error as Partial<ServiceError>).code !== status.UNIMPLEMENTED) {
      outages.failed(name, error);
      return false;
    }
    outages.answered(name);
    return true;
  }
}
