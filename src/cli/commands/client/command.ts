import { addOutputFlags } from "../../flags/output.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { ClientOptions } from "./run.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Settings:", order: 3, declare: declareClient };

/** `client list|forget`. */
function declareClient(registry: Registry): void {
  const group = registry.root
    .command("client")
    .description("list and forget the issuers that clients are bound to")
    .addHelpText(
      "after",
      `
A client of --client-id is bound to the issuer that --issuer names, or that it was first used with, and its secret, key
and assertions go to no other one. logout does not change that.`,
    );
  const run = (verb: "list" | "forget", ...positional: "clientId"[]) =>
    registry.action<ClientOptions>(
      async (options, context) => {
        const { CLIENT_RUNS } = await import("./run.js");
        return CLIENT_RUNS[verb](options, context);
      },
      ...positional,
    );
  addOutputFlags(group.command("list").description("show which issuer each client of the profile is bound to"))
    .option("--all", "of every profile")
    .addHelpText("after", "\nExample:\n  $ agentauth client list")
    .action(run("list"));
  addOutputFlags(group.command("forget").description("forget which issuer a client is bound to"))
    .argument("<client_id>", "the client")
    .addHelpText(
      "after",
      `
A login of the client still says which issuer it belongs to: agentauth logout <mcp_url> comes first.

Example:
  $ agentauth client forget my-service`,
    )
    .action(run("forget", "clientId"));
}
