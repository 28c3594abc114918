import { addOutputFlags } from "../../flags/output.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";
import type { ClientOptions } from "./run.js";

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
  const run = (verb: "list" | "forget", ...positional: "clientId"[]) =>
    registry.action<ClientOptions>(
      async (options, deps) => {
        const { CLIENT_RUNS } = await import("./run.js");
        return CLIENT_RUNS[verb](options, deps);
      },
      ...positional,
    );
  addOutputFlags(group.command("list").description("Show the issuer that each client of the profile is bound to"))
    .option("--all", "Include every profile")
    .addHelpText("after", "\nExample:\n  $ agentauth client list")
    .action(run("list"));
  addOutputFlags(group.command("forget").description("Remove the binding of a client to its issuer"))
    .argument("<client_id>", "ID of the client")
    .addHelpText(
      "after",
      `
A stored login binds its client too. To remove it first: agentauth logout <mcp_url>

Example:
  $ agentauth client forget my-service`,
    )
    .action(run("forget", "clientId"));
}
