import { createAgentClient } from "../../clients/agent.js";
import { checkHandOver } from "../../clients/bound-token.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { formatToken } from "../../clients/token-formats.js";
import type { TokenFlags } from "../../flags/agent.js";
import type { CommandContext } from "../../runtime/context.js";
import { readCredentialRequest } from "./credential-request.js";

/** `token`: prints the token and nothing else; nothing at all when there is none, or when it is asked for elsewhere. */
export async function runToken(options: TokenFlags, deps: CommandContext): Promise<undefined> {
  const url = parseMcpUrlArgument(options.url);
  const asker = await readCredentialRequest(url, options, deps);
  if (asker === undefined) return undefined;
  const agent = await createAgentClient(options, deps, "when-present");
  const { scope, minTtl, forceRefresh, format = "raw" } = options;
  const token = await agent.token(url, { scope, minTtl, forceRefresh, signal: deps.signal });
  if (format !== "json") checkHandOver(token, `--format ${format}`);
  await deps.io.stdout.write(formatToken(format, token, asker));
  return undefined;
}
