import { create, type JsonObject, toJson } from "@bufbuild/protobuf";
import {
  CreateFunctionResponseSchema,
  DescribeFunctionResponseSchema,
  DropFunctionResponseSchema,
  type FunctionVersion,
  FunctionVersionSchema,
  ListedFunctionSchema,
  ListFunctionsResponseSchema,
} from "../../../../gen/lance/gateway/v1/function_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { callerKey } from "../../../../namespace/call/caller-key.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier, sameIdentifier } from "../../../../namespace/identifier.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import type { FunctionRecord } from "../../jobs/functions/records.ts";
import type { CatalogDataContext, EngineContext, JobContext, PageContext } from "../context.ts";
import { pageOfNames } from "../paging.ts";
import { requireListed, requireParent } from "../tables/naming/object-names.ts";
import { checkDefinition, FUNCTION_NAME } from "./definition.ts";
import { requireFunctions, requireOwner } from "./require-owner.ts";

/** The kind of the jobs that publish a version of a function. */
export const CREATE_FUNCTION = "create_function";

/** Maximum number of versions of functions in a catalog. */
const MAX_VERSIONS = 1_000;

/** Digits by which the numbers of versions have the order of their texts. */
const VERSION_DIGITS = 10;

type Context = CatalogDataContext & JobContext & PageContext & Pick<EngineContext, "cluster">;

/** The operations on functions, whose source the gateway keeps and hands to workers, and never runs. */
export function createFunctionOperations(
  context: Context,
): Pick<LanceDbExtensions, "createFunction" | "describeFunction" | "listFunctions" | "dropFunction"> {
  const { catalog, clock, jobs } = context;
  const optionsOf = async (call: Call) => {
    const functions = requireFunctions(context);
    await requireOwner(call);
    return functions;
  };

  // The clients wait for a job. The version is there when it begins.
  jobs.define(CREATE_FUNCTION, async ({ spec: { definition } }) => ({ definition }));

  return {
    async createFunction(request, call) {
      const { records, secrets } = await optionsOf(call);
      const { id } = call;
      const name = id.at(-1) ?? "";
      if (!FUNCTION_NAME.test(name))
        throw new LanceError("InvalidInput", `${JSON.stringify(name)} is not the name of a function`);
      requireParent(await catalog.read(), id);
      const { definition, source, digest } = checkDefinition(request);
      for (const { variable, secret } of definition.secretBindings)
        if ((await secrets?.describe(secret)) === undefined)
          throw new LanceError(
            "InvalidInput",
            `the secret ${joinIdentifier(secret)}, which is bound to ${variable}, does not exist`,
          );
      const newest = (await records.versionsOf(id)).at(-1);
      if (newest?.digest !== digest && (await records.list()).length >= MAX_VERSIONS)
        throw new LanceError("InvalidInput", `a catalog may have ${MAX_VERSIONS} versions of functions`);
      const createdAt = Math.trunc(await clock.now());
      const record =
        newest?.digest === digest
          ? newest
          : await records.publish({ ...definition, id, digest, createdAt }, source);
      const spec = { definition: JSON.stringify(functionJson(record)) };
      const job = await jobs.submit({ kind: CREATE_FUNCTION, table: id, spec }, callerKey(call), call);
      return create(CreateFunctionResponseSchema, { jobId: job.id });
    },
    async describeFunction({ version }, call) {
      const { id } = call;
      const { records } = await optionsOf(call);
      const found = (await records.versionsOf(id)).find((each) => String(each.version) === version);
      if (found === undefined) throw versionNotFound(id, version);
      return create(DescribeFunctionResponseSchema, { function: toMessage(found) });
    },
    async listFunctions(request, call) {
      const { records } = await optionsOf(call);
      const { id } = call;
      requireListed(await catalog.read(), id);
      const own = (await records.list()).filter((each) => sameIdentifier(each.id.slice(0, -1), id));
      const byOrder = new Map(own.map((each) => [orderOf(each), each]));
      const { entries, ...page } = pageOfNames(context, "functions", byOrder, request);
      const functions = entries.map(([, each]) =>
        create(ListedFunctionSchema, {
          ...{ name: each.id.at(-1) ?? "", version: String(each.version) },
          definition: toMessage(each),
        }),
      );
      return create(ListFunctionsResponseSchema, { ...page, functions });
    },
    async dropFunction({ version }, call) {
      const { records } = await optionsOf(call);
      const { id } = call;
      const versions = await records.versionsOf(id);
      if (versions.length > 0 && !versions.some((each) => String(each.version) === version))
        throw versionNotFound(id, version);
      return create(DropFunctionResponseSchema, { dropped: await records.remove(id) });
    },
  };
}

function orderOf({ id, version }: FunctionRecord): string {
  return `${id.at(-1)} ${String(version).padStart(VERSION_DIGITS, "0")}`;
}

function toMessage(record: FunctionRecord): FunctionVersion {
  const { id, objectId, version, digest, artifact, runtime, signature, secretBindings, createdAt } = record;
  const { initialization = [], ...rest } = signature;
  const hasInitialization = Array.isArray(initialization) && initialization.length > 0;
  return create(FunctionVersionSchema, {
    ...{ name: id.at(-1) ?? "", namespacePath: id.slice(0, -1), objectId, version: String(version) },
    location: `functions/${objectId}/${version}`,
    image: { manifestDigest: digest, imageDescriptor: { artifact, runtime }, source: false },
    signature: { ...rest, ...(hasInitialization && { initialization }) },
    secretBindings: secretBindings.map(({ variable, secret }) => ({
      ...{ kind: "env", variable },
      secretRef: { name: secret.at(-1) ?? "", namespacePath: secret.slice(0, -1) },
    })),
    createdAtMillis: BigInt(createdAt),
    createdAt: new Date(createdAt).toISOString(),
    metadata: {},
    disabled: false,
  });
}

/** Returns a version as the clients read the result of its job. */
function functionJson(record: FunctionRecord): JsonObject {
  const { image, ...json } = toJson(FunctionVersionSchema, toMessage(record), {
    useProtoFieldName: true,
    alwaysEmitImplicit: true,
  }) as JsonObject;
  const { image_descriptor: descriptor, ...others } = image as JsonObject;
  return {
    ...json,
    image: { ...others, descriptor: descriptor as JsonObject },
    created_at_millis: record.createdAt,
  };
}

/** @returns the error of a version that there is not, or no longer */
export function versionNotFound(id: Identifier, version: string): LanceError {
  return new LanceError(
    "TableVersionNotFound",
    `there is no version ${JSON.stringify(version)} of the function ${joinIdentifier(id)}`,
  );
}
