import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { CreateFunctionRequest } from "../../../../gen/lance/gateway/v1/function_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { isJsonObject } from "../../../../runtime/text.ts";
import type { FunctionDefinition, StoredBinding } from "../../jobs/functions/records.ts";
import { parseFunctionType } from "./function-type.ts";

/** Maximum size of a source, in bytes: each driver gets all of it. */
const MAX_SOURCE_BYTES = 1024 * 1024;
/** Maximum length of everything but the source, in characters: it is also the result of a job. */
const MAX_DEFINITION_LENGTH = 32 * 1024;
/** Maximum number of parameters, packages, variables and secrets each. */
const MAX_ENTRIES = 64;
const MAX_FILES = 1_000;

const WORD = /^[A-Za-z_]\w{0,254}$/;
/** The names that LanceDB's clients take. */
export const FUNCTION_NAME = /^\w{1,255}$/;
export const SECRET_NAME = /^[\w.-]{1,255}$/;
const PACKAGE = /^[A-Za-z0-9][^\n\r\0]{0,499}$/;
const SOURCE_PATH = /^(?:[A-Za-z_]\w*\/){0,16}[A-Za-z_]\w*\.py$/;
const ENTRY_FILE = "user_function.py";

/** A definition with its source. */
export interface CheckedDefinition {
  readonly definition: FunctionDefinition;
  readonly source: Uint8Array;
  /** Digest of the definition. */
  readonly digest: string;
}

/**
 * Checks the definition of a function. Of the source, only the digest and the form are looked at: it is Python, and runs on workers alone.
 *
 * @throws LanceError InvalidInput, PayloadTooLarge; Unsupported for what the workers do not run
 */
export function checkDefinition(request: CreateFunctionRequest): CheckedDefinition {
  const { artifact, source } = checkArtifact(request.artifact ?? {});
  const signature = checkSignature(request.signature ?? {});
  const runtime = checkRuntime(request.runtime ?? {});
  const secretBindings = checkBindings(request, runtime);
  const definition = { artifact, signature, runtime, secretBindings };
  const text = canonical(definition);
  if (text.length > MAX_DEFINITION_LENGTH)
    throw new LanceError(
      "PayloadTooLarge",
      `the definition has ${text.length} characters, and may have ${MAX_DEFINITION_LENGTH}`,
    );
  return { definition, source, digest: digestOf(text) };
}

function checkArtifact(artifact: JsonObject) {
  const { kind, digest, entrypoint, content, adapter } = artifact;
  if (kind !== "python_callable" && kind !== "python_bundle")
    throw unsupported(`artifact.kind must be python_callable or python_bundle, not ${text(kind)}`);
  if (typeof entrypoint !== "string" || !WORD.test(entrypoint))
    throw invalid("artifact.entrypoint must be the name of a function or a class");
  const { kind: adapterKind, version } = isJsonObject(adapter) ? adapter : {};
  if (adapterKind !== "scalar_to_arrow_batch" || version !== 1)
    throw unsupported("artifact.adapter must be version 1 of scalar_to_arrow_batch");
  const { encoding, data } = isJsonObject(content) ? content : {};
  if (encoding !== "base64" || typeof data !== "string") throw invalid("artifact.content must be base64");
  if (data.length > Math.ceil(MAX_SOURCE_BYTES / 3) * 4)
    throw new LanceError("PayloadTooLarge", `a source may have ${MAX_SOURCE_BYTES} bytes`);
  const source = Buffer.from(data, "base64");
  if (source.toString("base64") !== data) throw invalid("artifact.content.data is not base64");
  if (digest !== digestOf(source)) throw invalid("artifact.digest is not that of artifact.content");
  if (kind === "python_bundle") checkBundle(source);
  return { artifact: { kind, digest: String(digest), entrypoint }, source };
}

/** Checks the paths of a bundle, which workers write to a directory of their own. */
function checkBundle(source: Buffer): void {
  let bundle: unknown;
  try {
    bundle = JSON.parse(source.toString("utf8"));
  } catch {
    throw invalid("a python_bundle must be JSON");
  }
  const files = isJsonObject(bundle) ? bundle["files"] : undefined;
  if (!isJsonObject(files) || typeof files[ENTRY_FILE] !== "string")
    throw invalid(`a python_bundle must have files, ${ENTRY_FILE} among them`);
  const entries = Object.entries(files);
  const wrong = entries.find(([path, code]) => !SOURCE_PATH.test(path) || typeof code !== "string");
  if (wrong !== undefined)
    throw invalid(`a python_bundle must not have the file ${JSON.stringify(wrong[0]).slice(0, 200)}`);
  if (entries.length > MAX_FILES) throw invalid(`a python_bundle may have ${MAX_FILES} files`);
}

function checkSignature({ inputs, output, initialization = [] }: JsonObject): JsonObject {
  const parameters = [
    ...listOf(inputs, "signature.inputs"),
    ...listOf(initialization, "signature.initialization"),
  ];
  const names = parameters.map((parameter) => {
    const {
      name,
      arrow_type: type,
      nullable,
      blob_access: access,
    } = isJsonObject(parameter) ? parameter : {};
    if (
      typeof name !== "string" ||
      !WORD.test(name) ||
      typeof type !== "string" ||
      typeof nullable !== "boolean"
    )
      throw invalid("a parameter must have name, arrow_type and nullable");
    if (type === "blob_v2" || (access ?? null) !== null)
      throw unsupported(`the parameter ${name} takes blobs`);
    return name;
  });
  if (new Set(names).size < names.length) throw invalid("two parameters have the same name");
  if (listOf(inputs, "signature.inputs").length === 0) throw invalid("a function must have a parameter");
  const { kind, arrow_type: type, nullable } = isJsonObject(output) ? output : {};
  if (kind !== "scalar")
    throw unsupported(
      `signature.output.kind must be scalar, not ${text(kind)}: a function fills one column here`,
    );
  if (typeof type !== "string" || nullable !== false)
    throw invalid("signature.output must have an arrow_type, and not be nullable");
  if (parseFunctionType(type, "the result").list === "list")
    throw unsupported("the result is a list of any length; fixed_size_list<T, N> is served");
  for (const parameter of listOf(inputs, "signature.inputs"))
    if (isJsonObject(parameter))
      parseFunctionType(String(parameter["arrow_type"]), `the parameter ${parameter["name"]}`);
  return { inputs: inputs as JsonValue, output: output as JsonValue, initialization };
}

function checkRuntime(runtime: JsonObject): JsonObject {
  const { kind, python_version: python, environment, env = {}, gpu } = runtime;
  if (kind !== "python" && kind !== "python_v2")
    throw unsupported(`runtime.kind must be python or python_v2, not ${text(kind)}`);
  if ((kind === "python_v2") !== (gpu === true))
    throw invalid("runtime.gpu must be true, and is of python_v2 alone");
  if (typeof python !== "string" || !/^3\.\d{1,2}$/.test(python))
    throw invalid("runtime.python_version must be such as 3.12");
  const { kind: source, packages = [] } = isJsonObject(environment) ? environment : {};
  if (source !== "pip") throw unsupported(`runtime.environment.kind must be pip, not ${text(source)}`);
  const list = listOf(packages as JsonValue, "runtime.environment.packages");
  const wrong = list.find((each) => typeof each !== "string" || !PACKAGE.test(each));
  if (wrong !== undefined) throw invalid(`runtime.environment.packages has ${text(wrong)}`);
  if (!isJsonObject(env)) throw invalid("runtime.env must be an object");
  const variables = Object.entries(env);
  if (variables.length > MAX_ENTRIES) throw invalid(`runtime.env may have ${MAX_ENTRIES} variables`);
  for (const [name, value] of variables)
    if (!WORD.test(name) || typeof value !== "string")
      throw invalid("runtime.env must have variables with texts");
  return {
    ...{ kind, python_version: python, environment: { kind: source, packages: list } },
    ...(variables.length > 0 && { env: env as JsonObject }),
    ...(gpu === true && { gpu }),
  };
}

function checkBindings({ secretBindings }: CreateFunctionRequest, { env = {} }: JsonObject): StoredBinding[] {
  if (secretBindings.length > MAX_ENTRIES) throw invalid(`a function may use ${MAX_ENTRIES} secrets`);
  const taken = new Set(isJsonObject(env) ? Object.keys(env) : []);
  return secretBindings.map(({ kind, variable = "", secretRef }) => {
    if (kind !== "env") throw unsupported(`secret_bindings.kind must be env, not ${text(kind)}`);
    if (!WORD.test(variable)) throw invalid("secret_bindings.variable must be the name of a variable");
    if (taken.has(variable)) throw invalid(`the variable ${variable} is set twice`);
    taken.add(variable);
    const secret = [...(secretRef?.namespacePath ?? []), secretRef?.name ?? ""];
    if (!secret.every((name) => SECRET_NAME.test(name)))
      throw invalid("secret_bindings.secret_ref must name a secret");
    return { variable, secret };
  });
}

function listOf(value: JsonValue | undefined, place: string): readonly JsonValue[] & JsonValue[] {
  if (!Array.isArray(value)) throw invalid(`${place} must be a list`);
  if (value.length > MAX_ENTRIES) throw invalid(`${place} may have ${MAX_ENTRIES} entries`);
  return value;
}

/** Returns JSON whose objects have their members in the order of the names. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    isJsonObject(each) ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))) : each,
  );
}

function digestOf(content: string | Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

function text(value: unknown): string {
  return JSON.stringify(value ?? null).slice(0, 200);
}

function invalid(message: string): LanceError {
  return new LanceError("InvalidInput", message);
}

function unsupported(message: string): LanceError {
  return new LanceError("Unsupported", message);
}
