import type { Body, Document, Schema, SpecOperation } from "./document.ts";
import { spellings } from "./shape.ts";

/** Returns what a document lacks of another one or has otherwise, as `place: what`, and what it adds. */
export function compareDocuments(theirs: Document, ours: Document) {
  const differences: string[] = [];
  const additions: string[] = [];
  const note = (place: string, whats: readonly string[]) =>
    differences.push(...whats.map((what) => `${place}: ${what}`));

  for (const operation of theirs.operations) {
    const own = ours.operations.find(
      ({ httpMethod, path }) => httpMethod === operation.httpMethod && path === operation.path,
    );
    if (own === undefined) note(operation.id, ["missing here"]);
    else compareOperation(operation, own);
  }
  const routes = new Set(theirs.operations.map(({ httpMethod, path }) => `${httpMethod} ${path}`));
  for (const { httpMethod, path } of ours.operations)
    if (!routes.has(`${httpMethod} ${path}`)) additions.push(`${httpMethod} ${path}`);
  for (const name of theirs.schemaNames) {
    if (ours.schemaNames.includes(name))
      compareSchema(name, theirs.schemaNamed(name), ours.schemaNamed(name));
    else if (theirs.schemaNamed(name).properties !== undefined) note(name, ["missing here"]);
  }
  return { differences, additions };

  function compareOperation(operation: SpecOperation, own: SpecOperation): void {
    const { id } = operation;
    if (own.id !== id) note(id, [`${own.id} here`]);
    for (const parameter of operation.parameters) {
      const place = `${id} parameter ${parameter.name}`;
      const same = own.parameters.find((each) => each.name === parameter.name && each.in === parameter.in);
      if (same === undefined) note(place, ["missing here"]);
      else {
        if (same.required !== parameter.required) note(place, [optionality(parameter.required)]);
        note(place, disagreements(parameter.schema, same.schema));
      }
    }
    const names = operation.parameters.map(({ name }) => name);
    for (const { name } of own.parameters)
      if (!names.includes(name)) additions.push(`${id} parameter ${name}`);
    compareBody(`${id} request`, operation.request, own.request);
    if (own.request?.required && operation.request?.required === false)
      note(`${id} request`, [optionality(false)]);
    const { success } = operation;
    if (success.status !== own.success.status) note(id, [`status ${success.status} there`]);
    compareBody(`${id} answer`, success.body, own.success.body);
    const missing = operation.errors.filter((status) => !own.errors.some((each) => covers(status, each)));
    note(
      id,
      missing.map((status) => `error ${status} missing here`),
    );
  }

  function compareBody(place: string, body: Body | undefined, own: Body | undefined): void {
    if (body === undefined || own === undefined) {
      if (body !== own) note(place, [body === undefined ? "none there" : "none here"]);
      return;
    }
    if (!own.mediaTypes.includes(body.mediaType)) note(place, [`${body.mediaType} there only`]);
    else if (body.mediaType === "application/json") note(place, disagreements(body.schema, own.schema));
  }

  function compareSchema(name: string, schema: Schema, own: Schema): void {
    for (const [property, node] of Object.entries(schema.properties ?? {})) {
      const place = `${name}.${property}`;
      const same = own.properties?.[property];
      if (same === undefined) {
        note(place, ["missing here"]);
        continue;
      }
      const required = schema.required?.includes(property) ?? false;
      const isPromised = name.endsWith("Response") && own.required?.includes(property);
      if (required !== (own.required?.includes(property) ?? false) && !isPromised)
        note(place, [optionality(required)]);
      note(place, disagreements(theirs.schemaAt(node), ours.schemaAt(same)));
    }
    for (const property of Object.keys(own.properties ?? {}))
      if (schema.properties?.[property] === undefined) additions.push(`${name}.${property}`);
  }

  function disagreements(schema: Schema, own: Schema): string[] {
    // Both name the schema, and it is compared by its name.
    if (own.properties !== undefined && schema.name === own.name) return [];
    if (schema.properties !== undefined && own.properties !== undefined) {
      compareSchema(own.name ?? schema.name ?? "", schema, own);
      return [];
    }
    if (schema.type !== own.type) return [`${schema.type} there, ${own.type} here`];
    if (own.enum !== undefined) return spellingDisagreements(schema, own);
    if (schema.type === "array") {
      const item = own.items || own.prefixItems?.[0];
      return disagreements(theirs.schemaAt(schema.items), ours.schemaAt(item));
    }
    if (typeof schema.additionalProperties === "object") {
      const value = own.additionalProperties;
      if (typeof value !== "object") return ["a map there"];
      return disagreements(theirs.schemaAt(schema.additionalProperties), ours.schemaAt(value));
    }
    const isOtherFormat =
      schema.format !== undefined && schema.format !== (own.format ?? own.contentEncoding);
    return isOtherFormat ? [`${schema.format} there, ${own.format ?? "no format"} here`] : [];
  }
}

function spellingDisagreements(schema: Schema, own: Schema): string[] {
  const normal = (names: readonly string[] = []) =>
    names
      .map((name) => (schema.enum === undefined ? name.toLowerCase() : name))
      .sort()
      .join(", ");
  const [there, here] = [normal(spellings(schema)), normal(own.enum)];
  return there === here ? [] : [`${there} there, ${here} here`];
}

function optionality(required: boolean): string {
  return required ? "required there, optional here" : "optional there, required here";
}

/** Whether a status, such as `404` or `5XX`, is met by another one. */
function covers(status: string, own: string): boolean {
  return new RegExp(`^${status.replaceAll("X", "\\d")}$`).test(own);
}
