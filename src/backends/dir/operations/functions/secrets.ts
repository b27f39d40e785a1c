import { create } from "@bufbuild/protobuf";
import {
  AlterSecretResponseSchema,
  CreateSecretResponseSchema,
  DescribeSecretResponseSchema,
  DropSecretResponseSchema,
  ListedSecretSchema,
  ListSecretsResponseSchema,
} from "../../../../gen/lance/gateway/v1/function_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier, sameIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import type { CatalogDataContext, EngineContext, PageContext } from "../context.ts";
import { pageOfNames } from "../paging.ts";
import { requireListed, requireParent } from "../tables/naming/object-names.ts";
import { SECRET_NAME } from "./definition.ts";
import { requireFunctions, requireOwner } from "./require-owner.ts";

/** Maximum size of a value, in bytes. */
const MAX_VALUE_BYTES = 64 * 1024;
/** Maximum number of secrets of a catalog. */
const MAX_SECRETS = 1_000;

type SecretOperation = "createSecret" | "alterSecret" | "describeSecret" | "dropSecret" | "listSecrets";

/** The operations on secrets. None of them returns a value. */
export function createSecretOperations(
  context: CatalogDataContext & PageContext & Pick<EngineContext, "cluster">,
): Pick<LanceDbExtensions, SecretOperation> {
  const { catalog, clock } = context;
  const secretsOf = async (call: Call) => {
    const { secrets } = requireFunctions(context);
    await requireOwner(call);
    if (secrets !== undefined) return secrets;
    throw new LanceError("Unsupported", "secrets are not kept without a key (--function-secret-key-file)");
  };
  const now = async () => Math.trunc(await clock.now());

  return {
    async createSecret({ value }, call) {
      const secrets = await secretsOf(call);
      const { id } = call;
      checkName(id);
      checkValue(value);
      requireParent(await catalog.read(), id);
      if ((await secrets.list()).length >= MAX_SECRETS)
        throw new LanceError("InvalidInput", `a catalog may have ${MAX_SECRETS} secrets`);
      if (await secrets.create(id, value, await now())) return create(CreateSecretResponseSchema);
      throw new LanceError("InvalidTableState", `the secret ${joinIdentifier(id)} already exists`);
    },
    async alterSecret({ value }, call) {
      const secrets = await secretsOf(call);
      const { id } = call;
      checkValue(value);
      if (await secrets.alter(id, value, await now())) return create(AlterSecretResponseSchema);
      throw missing(id);
    },
    async describeSecret(_request, call) {
      const { id } = call;
      const found = await (await secretsOf(call)).describe(id);
      if (found === undefined) throw missing(id);
      const { createdAt, updatedAt } = found;
      const times = { createdAtMillis: BigInt(createdAt), updatedAtMillis: BigInt(updatedAt) };
      return create(DescribeSecretResponseSchema, { name: id.at(-1) ?? "", ...times });
    },
    async dropSecret(_request, call) {
      const { id } = call;
      if (await (await secretsOf(call)).remove(id)) return create(DropSecretResponseSchema);
      throw missing(id);
    },
    async listSecrets(request, call) {
      const secrets = await secretsOf(call);
      const { id } = call;
      requireListed(await catalog.read(), id);
      const own = (await secrets.list()).filter((each) => sameIdentifier(each.slice(0, -1), id));
      const byName = new Map(own.map((each) => [each.at(-1) ?? "", each]));
      const { entries, ...page } = pageOfNames(context, "secrets", byName, request);
      const found = entries.map(([name]) => create(ListedSecretSchema, { name }));
      return create(ListSecretsResponseSchema, { ...page, secrets: found });
    },
  };
}

function checkName(id: Identifier): void {
  const name = id.at(-1) ?? "";
  if (!SECRET_NAME.test(name))
    throw new LanceError("InvalidInput", `${JSON.stringify(name)} is not the name of a secret`);
}

function checkValue(value: string): void {
  if (value === "") throw new LanceError("InvalidInput", "the value of a secret must not be empty");
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES)
    throw new LanceError("PayloadTooLarge", `the value of a secret may have ${MAX_VALUE_BYTES} bytes`);
}

function missing(id: Identifier): LanceError {
  return new LanceError("InvalidInput", `the secret ${joinIdentifier(id)} does not exist`);
}
