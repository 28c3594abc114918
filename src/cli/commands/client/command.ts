import { addLoginSettings } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/global.js";
import { collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Settings:", order: 3, names: ["client"], declare: declareClient };

function declareClient(registry: Registry): void {
  const group = registry.root.command("client").description("The metadata document of this client");
  const document = group
    .command("document")
    .description("Print the metadata document of this client, or check a published one");
  addLoginSettings(addOutputFlags(document), "document").option(
    "--redirect-uri <uri>",
    "Redirect URI (repeatable; default: those of this program's logins)",
    collectRepeated,
  );
  document
    .option("--check <url>", "Check the document that is published at this URL")
    .addHelpText(
      "after",
      `
With the document, an issuer that supports it needs no registration: the URL is the client ID. You publish it
yourself, as application/json on a public https host, and set: agentauth config set client_metadata_url <url>

--check fetches as an issuer does, without redirects and at most 5 KiB, and exits with 3 if one must refuse.

Examples:
  $ agentauth client document --client-metadata-url https://www.example/agentauth/client.json > client.json
  $ agentauth client document --check https://www.example/agentauth/client.json`,
    )
    .action(registry.run(() => import("./document.js"), "runDocument"));
}
