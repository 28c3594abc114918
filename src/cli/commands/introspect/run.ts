import { agentOf } from "../../clients/agent.js";
import { mcpAddress } from "../../clients/mcp-url.js";
import { settingsOf } from "../../config/settings.js";
import type { GrantFlags } from "../../flags/agent.js";
import { formatOf } from "../../output/chosen-format.js";
import { printObject } from "../../output/object.js";
import type { Deps } from "../../runtime/context.js";

/** `introspect`. */
export async function runIntrospect(options: GrantFlags, deps: Deps): Promise<undefined> {
  const agent = await agentOf(options, deps, "when-present");
  const answer = await agent.introspect(mcpAddress(options.url ?? ""), { signal: deps.signal });
  const format = formatOf(options, settingsOf(options, deps), deps.io);
  await printObject(deps.io, format, answer, { jq: options.jq, showSecrets: options.showSecrets, now: deps.now });
  return undefined;
}
