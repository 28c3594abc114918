import { parseMcpUrlArgument } from "../../clients/login-first.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { printResult } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";

export async function runIntrospect(options: StoredLoginFlags, context: CommandContext): Promise<undefined> {
  const agent = await context.agent();
  const response = await agent.introspect(parseMcpUrlArgument(options.url ?? ""), { signal: context.signal });
  await printResult(response, options, context);
}
