import { addOutputFlags } from "../../flags/output.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Settings:", order: 3, names: ["client"], declare: declareClient };

/** `client list|forget`. */
function declareClient(registry: Registry): void {
  const group = registry.root
    .command("client")
    .description("List and remove the bindings of clients to issuers")
    .addHelpText(
      "after",
      `
A client of --client-id is bound to the issuer that --issuer names, or to the first issuer that it was used with. Its
secret, key and assertions are sent to no other issuer. logout does not change the binding.`,
    );
  const load = async () => (await import("./run.js")).CLIENT_RUNS;
  addOutputFlags(group.command("list").description("Show the issuer that each client of the profile is bound to"))
    .option("--all", "Include every profile")
    .addHelpText("after", "\nExample:\n  $ agentauth client list")
    .action(registry.run(load, "list"));
  addOutputFlags(group.command("forget").description("Remove the binding of a client to its issuer"))
    .argument("<client_id>", "ID of the client")
    .addHelpText(
      "after",
      `
A stored login binds its client too. To remove it first: agentauth logout <mcp_url>

Example:
  $ agentauth client forget my-service`,
    )
    .action(registry.run(load, "forget", "clientId"));
}
