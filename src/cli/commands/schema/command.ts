import { OUTPUT_TYPES } from "../../output/output-types.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Help:", order: 3, names: ["schema"], declare: declareSchema };

function declareSchema(registry: Registry): void {
  const rows = Object.entries(OUTPUT_TYPES).map(([name, { description }]) => `  ${name.padEnd(14)} ${description}`);
  registry.root
    .command("schema")
    .description("Print the JSON Schema of a command's JSON output")
    .argument("[type]", "the type; without it the types are listed")
    .addHelpText(
      "after",
      `
Types:
${rows.join("\n")}

A list prints an array of the type it names, with -o ndjson one a line. More fields may come in any version.

Examples:
  $ agentauth schema
  $ agentauth schema device > device.schema.json`,
    )
    .action(registry.run(() => import("./run.js"), "runSchema", "type"));
}
