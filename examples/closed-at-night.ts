// Refuses changes between 22 and 6 o'clock, on all protocols: lance-gateway serve --plugin ./examples/closed-at-night.ts
import { type GatewayPlugin, type Interceptor, isRead, LanceError } from "lance-gateway";

const closedAtNight: Interceptor = (call, request, next) => {
  const hour = new Date().getHours();
  if ((hour >= 22 || hour < 6) && !isRead(call.method)) {
    throw new LanceError("PermissionDenied", `${request.operation} has to wait until 6 o'clock`);
  }
  return next(call, request);
};

export default { interceptors: [closedAtNight] } satisfies GatewayPlugin;
