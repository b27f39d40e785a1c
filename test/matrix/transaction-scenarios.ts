import {
  SetPropertyMode,
  TransactionStatus,
  UnsetPropertyMode,
} from "../../src/gen/lance/namespace/v1/transaction_pb.ts";
import { type Scenario, text } from "./scenario.ts";
import { grown } from "./tables.ts";

/** Operations on transactions. */
export const TRANSACTION_SCENARIOS: readonly Scenario[] = [
  {
    operation: "describeTransaction",
    name: "by version",
    run: async (client, ns) => {
      const { status, properties } = await client.describeTransaction({ id: [ns, "t", "1"] });
      return [status, { ...properties, uuid: typeof properties["uuid"] }];
    },
  },
  {
    operation: "describeTransaction",
    name: "that is missing",
    fails: "TransactionNotFound",
    run: (client, ns) => client.describeTransaction({ id: [ns, "t", "missing"] }),
  },
  {
    operation: "alterTransaction",
    name: "with every kind of action",
    run: async (client, ns) => {
      const id = [...(await grown(client, [ns, "altered"])), "2"];
      const { status, properties } = await client.alterTransaction({
        id,
        actions: [
          { action: { case: "setStatusAction", value: { status: TransactionStatus.RUNNING } } },
          { action: { case: "setPropertyAction", value: { key: "a", value: text } } },
          {
            action: {
              case: "setPropertyAction",
              value: { key: "b", value: "1", mode: SetPropertyMode.FAIL },
            },
          },
          { action: { case: "unsetPropertyAction", value: { key: "b", mode: UnsetPropertyMode.FAIL } } },
        ],
      });
      return [status, { ...properties, uuid: "" }];
    },
  },
  {
    operation: "alterTransaction",
    name: "that sets what is set",
    fails: "ConcurrentModification",
    run: async (client, ns) => {
      const value = { key: "once", value: "1", mode: SetPropertyMode.FAIL };
      const actions = [{ action: { case: "setPropertyAction" as const, value } }];
      await client.alterTransaction({ id: [ns, "t", "1"], actions });
      await client.alterTransaction({ id: [ns, "t", "1"], actions });
    },
  },
  {
    operation: "alterTransaction",
    name: "without actions",
    fails: "InvalidInput",
    run: (client, ns) => client.alterTransaction({ id: [ns, "t", "1"] }),
  },
];
