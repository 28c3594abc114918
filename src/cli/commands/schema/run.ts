import { usageError } from "../../../errors.js";
import { suggestionHint } from "../../../http/suggest.js";
import { quote } from "../../../redact.js";
import { rowColumns } from "../../output/columns.js";
import { OUTPUT_TYPES, type OutputTypeName } from "../../output/output-types.js";
import type { Column } from "../../output/value.js";
import { printRows } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import outputSchemas from "./outputs.gen.json" with { type: "json" };
import serviceSchemas from "./service.gen.json" with { type: "json" };

const SCHEMAS: Readonly<Record<OutputTypeName, object>> = { ...serviceSchemas, ...outputSchemas };

const TYPE_COLUMNS = [
  { path: "name", header: "TYPE", kind: "name" },
  { path: "version", header: "VERSION", kind: "number" },
  { path: "$id", header: "ID" },
  { path: "description", header: "DESCRIPTION" },
] as const satisfies readonly Column[];

/** `schema`: one schema, or the list of types: name, version, `$id`, description. */
export async function runSchema({ type }: { type?: string }, { io, now }: CommandContext): Promise<undefined> {
  if (type === undefined) {
    // The id is for programs; a person types the name.
    const columns = io.stdout.isTTY ? TYPE_COLUMNS.filter(({ path }) => path !== "$id") : TYPE_COLUMNS;
    const rows = Object.entries(OUTPUT_TYPES).map(([name, type]) => ({
      name,
      $id: schemaId(name, type.version),
      ...type,
    }));
    await printRows(rows, rowColumns(columns), {}, { io, now, settings: () => ({ output: undefined }) });
    return;
  }
  if (!isOutputType(type)) {
    const names = Object.keys(OUTPUT_TYPES);
    const hint = suggestionHint(type, names, `types: ${names.join(", ")}`);
    throw usageError(`there is no output type ${quote(type, 80)}`, hint);
  }
  const { description, version } = OUTPUT_TYPES[type];
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: schemaId(type, version),
    title: description,
    ...SCHEMAS[type],
  };
  await io.stdout.write(`${JSON.stringify(schema, null, 2)}\n`);
}

function isOutputType(name: string): name is OutputTypeName {
  return Object.hasOwn(OUTPUT_TYPES, name);
}

function schemaId(name: string, version: number): string {
  return `urn:agentauth:schema:${name}:${version}`;
}
