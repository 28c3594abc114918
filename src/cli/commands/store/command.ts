import { CONNECTION_STATES } from "../../../oauth/model/connection.js";
import { addOutputFlags } from "../../flags/output.js";
import { addFlags, wholeNumber } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Settings:", order: 5, names: ["store"], declare: declareStore };

/** `store logins|health|reseal|sql|export|import|keys`. */
function declareStore(registry: Registry): void {
  const group = registry.root
    .command("store")
    .description("Look after the store of logins, in Redis and PostgreSQL above all")
    .addHelpText(
      "after",
      `
AGENTAUTH_STORE=redis or postgres stores logins in an engine that many machines share. AGENTAUTH_STORE_URL has its
address and AGENTAUTH_STORE_KEYS the key ring that seals the logins: each the secret itself, or file:PATH. The client
package is yours: redis, ioredis or iovalkey; pg or postgres.`,
    );
  const load = async () => (await import("./run.js")).STORE_RUNS;
  const logins = group.command("logins").description("List the stored logins, without opening their tokens");
  addFlags(logins, undefined, [
    ["--tenant <tenant>", "Only logins of this tenant (default: that of the settings)"],
    ["--server <mcp_url>", "Only logins at this MCP server"],
    ["--state <state>", "Only logins in this state", CONNECTION_STATES],
    ["--needs-login", "Same as --state needs_login"],
    ["--limit <n>", "Number of logins to print (default: all)", wholeNumber(1)],
  ]);
  addOutputFlags(logins)
    .addHelpText(
      "after",
      `
Lists every profile, or the one that --profile names. The state expired needs no login: the next use refreshes it.

Example:
  $ agentauth store logins --needs-login --json`,
    )
    .action(registry.run(() => import("./logins.js"), "runLogins"));
  addOutputFlags(group.command("health").description("Check the engine: durability, eviction, clock and keys"))
    .addHelpText(
      "after",
      "\nExits with 8 if the engine must not be used, with 5 if it does not answer.\n\nExample:\n  $ agentauth store health --json",
    )
    .action(registry.run(load, "health"));
  addOutputFlags(group.command("keys").description("Make a key ring that seals logins"))
    .argument("[path]", "New file for it, which only you can read (default: standard output)")
    .addHelpText(
      "after",
      `
To exchange the key, add a second one to keys in every process, then make it current, then run store reseal, then remove
the first one. name_key never changes.

Example:
  $ agentauth store keys store-keys.json`,
    )
    .action(registry.run(load, "keys", "path"));
  addOutputFlags(group.command("reseal").description("Seal each record with the current key of the key ring"))
    .addHelpText("after", "\nRuns beside processes that use the store.\n\nExample:\n  $ agentauth store reseal")
    .action(registry.run(load, "reseal"));
  group
    .command("sql")
    .description("Print the SQL that creates the tables in PostgreSQL")
    .addHelpText("after", "\nExample:\n  $ agentauth store sql > tables.sql")
    .action(registry.run(load, "sql"));
  addOutputFlags(group.command("export").description("Write all logins, clients and bindings to a sealed file"))
    .argument("<path>", "New file, which only you can read")
    .addHelpText(
      "after",
      `
The file is sealed with store_keys, whatever the store is. Stop using the store first: a login that is used after the
export has other tokens than the file.

Example:
  $ AGENTAUTH_STORE=file agentauth store export logins.ndjson`,
    )
    .action(registry.run(load, "export", "path"));
  addOutputFlags(group.command("import").description("Read what store export wrote into the store"))
    .argument("<path>", "File of store export")
    .addHelpText(
      "after",
      `
A newer login of the store is not replaced, and no binding is. A file that is incomplete, or was sealed with another key,
changes nothing.

Example:
  $ AGENTAUTH_STORE=redis agentauth store import logins.ndjson`,
    )
    .action(registry.run(load, "import", "path"));
}
