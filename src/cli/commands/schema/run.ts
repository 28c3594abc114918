import { AgentAuthError } from "../../../errors.js";
import { quote } from "../../../redact.js";
import { OUTPUT_TYPES, type OutputTypeName } from "../../output/output-types.js";
import type { Column } from "../../output/value.js";
import { createWriter } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { suggest } from "../../runtime/suggest.js";
import { type JsonSchema, oneOf, record, time } from "./json-schema.js";
import { LOGIN_SCHEMAS } from "./logins.js";
import { PROGRAM_SCHEMAS } from "./program.js";
import { REPORT_SCHEMA } from "./report.js";
import { SERVICE_SCHEMAS } from "./service.gen.js";

const device: JsonSchema = SERVICE_SCHEMAS.device;
const pool: JsonSchema = SERVICE_SCHEMAS.pool;
const domain: JsonSchema = SERVICE_SCHEMAS.domain;

const SCHEMAS: Readonly<Record<OutputTypeName, JsonSchema>> = {
  device,
  pool,
  domain,
  "watch-event": eventSchema(),
  report: REPORT_SCHEMA,
  tree: treeSchema(),
  ...LOGIN_SCHEMAS,
  ...PROGRAM_SCHEMAS,
};

const TYPE_COLUMNS = [
  { path: "name", header: "TYPE", kind: "name" },
  { path: "version", header: "VERSION", kind: "number" },
  { path: "$id", header: "ID" },
  { path: "about", header: "ABOUT" },
] as const satisfies readonly Column[];

/** `schema`: one schema, or the list of types: name, version, `$id`, about. */
export async function runSchema({ type }: SchemaOptions, { io }: CommandContext): Promise<undefined> {
  if (type === undefined) {
    // The id is for programs; a person types the name.
    const columns = io.stdout.isTTY ? TYPE_COLUMNS.filter(({ path }) => path !== "$id") : TYPE_COLUMNS;
    const set = { columns, wideColumns: columns, fields: columns.map(({ path }) => path), bounded: true };
    const writer = createWriter(io.stdout.isTTY ? "table" : "plain", set, io);
    await writer.write(
      Object.entries(OUTPUT_TYPES).map(([name, { about, version }]) => ({
        name,
        version,
        $id: idOf(name, version),
        about,
      })),
    );
    await writer.end();
    return undefined;
  }
  if (!isOutputType(type)) {
    const names = Object.keys(OUTPUT_TYPES);
    const meant = suggest(type, names);
    throw new AgentAuthError("usage", `there is no output type ${quote(type, 80)}`, {
      class: "usage",
      hint: meant === undefined ? `types: ${names.join(", ")}` : `did you mean ${meant}?`,
    });
  }
  const { about, version } = OUTPUT_TYPES[type];
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: idOf(type, version),
    title: about,
    ...SCHEMAS[type],
  };
  await io.stdout.write(`${JSON.stringify(schema, null, 2)}\n`);
  return undefined;
}

function isOutputType(name: string): name is OutputTypeName {
  return Object.hasOwn(OUTPUT_TYPES, name);
}

function idOf(name: string, version: number): string {
  return `urn:agentauth:schema:${name}:${version}`;
}

function treeSchema(): JsonSchema {
  const count: JsonSchema = { type: "integer", description: "how many devices the pool has, also those not shown" };
  const pools = list({ ...pool, properties: { ...pool.properties, device_count: count, devices: list(device) } });
  const domains = list({ ...domain, properties: { ...domain.properties, pools } });
  const account_id: JsonSchema = { type: "string", description: "the account" };
  return { type: "object", properties: { account_id, domains }, required: ["account_id", "domains"] };
}

function eventSchema(): JsonSchema {
  return record({
    type: oneOf(["added", "modified", "removed"], "what happened to it"),
    object: { ...device, description: "the item as it is, or, where it is gone, as it was" },
    time: time("when the list was read"),
  });
}

function list(items: JsonSchema): JsonSchema {
  return { type: "array", items };
}

/** The options of `schema`. */
export interface SchemaOptions {
  type?: string;
}
