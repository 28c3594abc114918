import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { printObject } from "../../output/object.js";
import { formatOf } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";

/** `introspect`. */
export async function runIntrospect(options: StoredLoginFlags, context: CommandContext): Promise<undefined> {
  const agent = await context.agent();
  const response = await agent.introspect(parseMcpUrlArgument(options.url ?? ""), { signal: context.signal });
  const format = formatOf(options, context.settings(), context.io);
  await printObject(context.io, format, response, {
    jq: options.jq,
    showSecrets: options.showSecrets,
    now: context.now,
  });
  return undefined;
}
