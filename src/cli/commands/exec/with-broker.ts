import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen } from "../../../broker/listen.js";
import { usageError } from "../../../errors.js";
import { system } from "../../../platform/system.js";
import { buildBroker, policyOfFlags } from "../../clients/broker.js";
import type { CommandContext } from "../../runtime/context.js";
import type { ExecFlags } from "./exec-flags.js";
import { runCommand } from "./run-command.js";

/** The flags for a command that gets the token itself, or logs in. */
const OF_TOKEN = { as: "--as", minTtl: "--min-ttl", mask: "--mask", scope: "--scope" } as const;

/** `exec --broker`: the command gets the address of a broker that ends with it, and no token. */
export async function runWithBroker(
  command: readonly string[],
  options: ExecFlags & Required<Pick<ExecFlags, "broker">>,
  context: CommandContext,
): Promise<number> {
  const { broker: grants, listen: address, ...flags } = options;
  for (const [option, flag] of Object.entries(OF_TOKEN)) {
    if (options[option as keyof typeof OF_TOKEN] === undefined) continue;
    const hint = option === "scope" ? "--broker <name>=<url>,scope=<scopes>" : `leave out ${flag}`;
    throw usageError(`--broker and ${flag} do not go together`, hint);
  }
  if (options.login === true) throw usageError("--broker and --login do not go together", "agentauth login <mcp_url>");
  // Short, since the path of a socket can have about a hundred bytes.
  const folder =
    address === undefined && system.name !== "win32" ? mkdtempSync(join(tmpdir(), "agentauth-")) : undefined;
  const removeFolder = () => folder !== undefined && rmSync(folder, { recursive: true, force: true });
  try {
    const own = folder === undefined ? "127.0.0.1:0" : `unix:${join(folder, "broker.sock")}`;
    const policy = policyOfFlags(grants, { listen: address ?? own }, "--broker");
    const { listeners, close } = await listen(await buildBroker(policy, flags, context));
    return await runCommand(command, context, {
      variable() {
        context.signal.throwIfAborted();
        const [{ socket, url } = { socket: undefined, url: "" }] = listeners;
        return socket === undefined ? ["AGENTAUTH_BROKER_URL", url] : ["AGENTAUTH_BROKER_SOCKET", socket];
      },
      // It gets no secret.
      mask: false,
      secrets: () => [],
      stop: () => close(0).finally(removeFolder),
    });
  } finally {
    removeFolder();
  }
}
