import { tokenOf } from "../../clients/login-first.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { checkHandOver, formatToken } from "../../clients/token-formats.js";
import type { TokenFlags } from "../../flags/agent.js";
import type { CommandContext } from "../../runtime/context.js";
import { readCredentialRequest } from "./credential-request.js";

/** `token`: prints the token and nothing else; nothing at all on failure, or if the request is for another server. */
export async function runToken(options: TokenFlags, context: CommandContext): Promise<undefined> {
  const url = parseMcpUrlArgument(options.url);
  const request = await readCredentialRequest(url, options, context);
  if (request === undefined) return undefined;
  const agent = await context.agent();
  const { scope, minTtl, forceRefresh, format = "raw" } = options;
  const token = await tokenOf(agent, url, { scope, minTtl, forceRefresh, signal: context.signal });
  if (format !== "json") checkHandOver(token, `--format ${format}`);
  await context.io.stdout.write(formatToken(format, token, request));
  return undefined;
}
