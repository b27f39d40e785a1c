import { type ChannelOptions, experimental, Metadata } from "@grpc/grpc-js";
import type { ByteBudget } from "../../../namespace/memory/byte-budget.ts";
import type { Connection } from "../../../runtime/internals/grpc-connection.ts";
import type { Gate } from "../../resilience/gate.ts";
import { paceResets } from "./paced-resets.ts";

/** The connections that a channel has now. */
export interface PickedServers {
  /** Options of the channel. */
  readonly options: ChannelOptions;
  /** Returns the connection for the next call: all of them in turn. Undefined if none is ready. */
  pick(): Connection | undefined;
}

const POLICY = "lance_gateway_round_robin";
/** Option of a channel by which its policy finds what it shares its picker with; no connection gets to know it. */
const SHARED = `${experimental.SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX}.lance_gateway_shared`;
const ROUND_ROBIN = experimental.parseLoadBalancingConfig({ round_robin: {} });
/** Policies may pick by them; round robin does not. */
const PICK_ARGS: experimental.PickArgs = { metadata: new Metadata(), extraPickInfo: {} };

interface Shared {
  readonly slots: Gate;
  readonly answers: ByteBudget;
  picker: experimental.Picker | undefined;
}

/**
 * Returns the options of a channel that calls its servers in turn, because a name with several addresses is a service
 * with several instances; calls may also take its connections themselves.
 *
 * @param slots slots of the channel's calls
 * @param answers memory of messages that have not arrived as a whole
 */
export function createPickedServers(slots: Gate, answers: ByteBudget): PickedServers {
  const shared: Shared = { slots, answers, picker: undefined };
  return {
    options: {
      "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ [POLICY]: {} }] }),
      [SHARED]: shared,
    },
    pick() {
      const picked = shared.picker?.pick(PICK_ARGS);
      return picked?.pickResultType === experimental.PickResultType.COMPLETE
        ? (picked.subchannel ?? undefined)
        : undefined;
    },
  };
}

/** Round robin over connections that are reset at a pace, which shares its current picker. */
class SharingRoundRobin implements experimental.LoadBalancer {
  readonly #child: experimental.ChildLoadBalancerHandler;
  #shared: Shared | undefined;

  constructor(helper: experimental.ChannelControlHelper) {
    this.#child = new experimental.ChildLoadBalancerHandler(
      experimental.createChildChannelControlHelper(helper, {
        createSubchannel: (address, options) =>
          paceResets(helper.createSubchannel(address, options), this.#shared as Shared),
        updateState: (state, picker, error) => {
          if (this.#shared !== undefined) this.#shared.picker = picker;
          helper.updateState(state, picker, error);
        },
      }),
    );
  }

  updateAddressList(
    endpoints: experimental.StatusOr<experimental.Endpoint[]>,
    _config: experimental.TypedLoadBalancingConfig,
    options: ChannelOptions,
    note: string,
  ): boolean {
    this.#shared = options[SHARED] as Shared;
    return this.#child.updateAddressList(endpoints, ROUND_ROBIN, options, note);
  }

  exitIdle(): void {
    this.#child.exitIdle();
  }

  resetBackoff(): void {
    this.#child.resetBackoff();
  }

  destroy(): void {
    if (this.#shared !== undefined) this.#shared.picker = undefined;
    this.#child.destroy();
  }

  getTypeName(): string {
    return POLICY;
  }
}

/** Configuration of the policy, which has no parameters. */
class SharingRoundRobinConfig implements experimental.TypedLoadBalancingConfig {
  static createFromJson(): SharingRoundRobinConfig {
    return new SharingRoundRobinConfig();
  }

  getLoadBalancerName(): string {
    return POLICY;
  }

  toJsonObject(): object {
    return { [POLICY]: {} };
  }
}

experimental.registerLoadBalancerType(POLICY, SharingRoundRobin, SharingRoundRobinConfig);
