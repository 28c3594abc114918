import { Ajv2020, type AnySchemaObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { linesOf, runCli } from "../helpers/cli.js";

/** The same schema, for which a field that it does not name is an error, so that nothing is printed unsaid. */
function closed(schema: AnySchemaObject): AnySchemaObject {
  const inner = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inner);
    return typeof value === "object" && value !== null ? closed(value as AnySchemaObject) : value;
  };
  const own = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, inner(value)]));
  const isRecord = typeof schema["properties"] === "object" && schema["type"] !== undefined;
  return isRecord && schema["additionalProperties"] === undefined ? { ...own, additionalProperties: false } : own;
}

/** What is wrong with a value, by the schema of a type. */
export type SchemaChecks = (type: string, value: unknown) => unknown;

/** The checks by every schema that `agentauth schema` lists. */
export async function schemaChecks(): Promise<SchemaChecks> {
  const names = linesOf((await runCli(["schema"])).stdout).map((line) => line.split("\t")[0] ?? "");
  const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true });
  formats.default(ajv);
  const validators = new Map<string, ValidateFunction>();
  for (const name of names) {
    validators.set(name, ajv.compile(closed(JSON.parse((await runCli(["schema", name])).stdout))));
  }
  return (type, value) => {
    const validate = validators.get(type);
    if (validate === undefined) throw new Error(`there is no type ${type}`);
    return validate(value) ? undefined : validate.errors;
  };
}
