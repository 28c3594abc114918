import { AgentAuthError } from "../../../errors.js";
import { shellWord } from "../../../redact.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { warnOfUnusable } from "../../clients/unusable-logins.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { formatOf } from "../../output/chosen-format.js";
import { createWriter } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { LOGOUT_COLUMNS, logout, logoutOfAll, logoutOfIdp } from "./logout.js";

/** `logout`: deletes the local login first, whatever the issuer returns. */
export async function runLogout(options: StoredLoginFlags, context: CommandContext): Promise<number | undefined> {
  const { idp } = options;
  if ([options.url, options.all, idp].filter((one) => one !== undefined).length !== 1) {
    throw new AgentAuthError("usage", "give one MCP server, --idp, or --all", {
      class: "usage",
      hint: "agentauth status lists the servers",
    });
  }
  if (options.all && options.accountHint !== undefined) {
    throw new AgentAuthError("usage", "--all covers every account, and --account-hint names one", {
      class: "usage",
      hint: `leave out --all: agentauth logout <mcp_url> --account-hint ${shellWord(options.accountHint)}`,
    });
  }
  const settings = context.settings();
  const agent = await context.agent();
  const profile = settings.profile.value;
  const unusable: AgentAuthError[] = [];
  const onUnusable = (error: AgentAuthError) => unusable.push(error);
  const { logouts, failure } =
    idp !== undefined
      ? { logouts: await logoutOfIdp(agent, profile, context), failure: undefined }
      : options.url === undefined
        ? await logoutOfAll(agent, await agent.status(undefined, { onUnusable }), profile, context)
        : {
            logouts: [await logout(agent, { server: parseMcpUrlArgument(options.url) }, profile, context)],
            failure: undefined,
          };
  if (options.output !== undefined || options.json === true || options.jq !== undefined) {
    const format = formatOf(options, settings, context.io);
    const writer = createWriter(
      format,
      { ...LOGOUT_COLUMNS, bounded: true, jq: options.jq, now: context.now },
      context.io,
    );
    await writer.write(logouts);
    await writer.end();
  }
  warnOfUnusable(unusable, context);
  if (failure) throw failure;
  return unusable.length > 0 ? EXIT_CODES.store : undefined;
}
