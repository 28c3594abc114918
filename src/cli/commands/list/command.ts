import { type Command, Option } from "commander";
import { addOutputFlags } from "../../flags/global.js";
import { addDeviceFilters, addListFlags, type ListFlags } from "../../flags/list.js";
import type { ListKind } from "../../listing/scope.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = {
  group: "Lists:",
  order: 1,
  names: ["devices", "pools", "domains"],
  declare: declareLists,
};

const KINDS: readonly (ListKind & { description: string; of: string; examples: string })[] = [
  {
    noun: "devices",
    scope: "pool",
    description: "List the devices of a pool",
    of: "A device is an agent, a script or a browser that was seen in a pool.",
    examples: `
  $ agentauth devices list --pool <pool_id>
  $ agentauth devices list --pool <pool_id> --sort last_seen:desc --limit 20
  $ agentauth devices list --pool <pool_id> --status revoked -o csv > revoked.csv
  $ agentauth devices list --pool <pool_id> -o ndjson --jq .last_seen.country_code`,
  },
  {
    noun: "pools",
    scope: "domain",
    description: "List the pools of a domain",
    of: "Each pool has its own authorization server.",
    examples: `
  $ agentauth pools list --domain <domain_id>
  $ agentauth pools list --domain <domain_id> -o id`,
  },
  {
    noun: "domains",
    scope: "account",
    description: "List the domains of an account",
    of: "A domain contains pools.",
    examples: `
  $ agentauth domains list --account <account_id>
  $ agentauth domains list --account <account_id> -o json`,
  },
];

function declareLists(registry: Registry): void {
  for (const kind of KINDS) {
    const group = registry.root.command(kind.noun).description(kind.description).addHelpText("after", `\n${kind.of}`);
    const list = addListFlags(group.command("list").description(kind.description))
      .addOption(scopeOption(kind.scope))
      .addHelpText("after", `\nExamples:${kind.examples}`)
      .action(
        registry.action<ListFlags>(async (options, deps) => {
          const { runList } = await import("../../listing/print-list.js");
          return runList(kind, options, deps);
        }),
      );
    if (kind.noun === "devices") addDeviceFilters(list);
    declareGet(group, kind, registry);
  }
}

function declareGet(group: Command, kind: ListKind, registry: Registry): void {
  const { noun, scope } = kind;
  const singular = noun.slice(0, -1);
  const description = `Show one ${singular} of ${scope === "account" ? "an" : "a"} ${scope} (found by listing the ${scope})`;
  addOutputFlags(group.command("get").description(description))
    .argument(`<${singular}_id>`, `ID of the ${singular}`)
    .addOption(scopeOption(scope))
    .addHelpText("after", `\nExample:\n  $ agentauth ${noun} get <${singular}_id> --${scope} <${scope}_id> -o json`)
    .action(
      registry.action<ListFlags & { id: string }>(
        async (options, context) => (await import("./run.js")).runGet(kind, options, context),
        "id",
      ),
    );
}

function scopeOption(scope: ListKind["scope"]): Option {
  return new Option(`--${scope} <${scope}_id>`, `ID of the ${scope} (default: the profile's)`);
}
