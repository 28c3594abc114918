import { createAgentClient } from "../../clients/agent.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { settingsOf } from "../../config/settings.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { formatOf } from "../../output/chosen-format.js";
import { printObject } from "../../output/object.js";
import type { CommandContext } from "../../runtime/context.js";

/** `introspect`. */
export async function runIntrospect(options: StoredLoginFlags, deps: CommandContext): Promise<undefined> {
  const agent = await createAgentClient(options, deps, "when-present");
  const answer = await agent.introspect(parseMcpUrlArgument(options.url ?? ""), { signal: deps.signal });
  const format = formatOf(options, settingsOf(options, deps), deps.io);
  await printObject(deps.io, format, answer, { jq: options.jq, showSecrets: options.showSecrets, now: deps.now });
  return undefined;
}
