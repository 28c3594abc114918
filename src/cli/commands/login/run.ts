import { AgentAuthError } from "../../../errors.js";
import type { LoginStatus } from "../../../oauth/login/login-status.js";
import { escapeText, shellWord } from "../../../redact.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { repairHome } from "../../config/home-access.js";
import type { TokenFlags } from "../../flags/agent.js";
import { escapeJson } from "../../output/safe-json.js";
import type { CommandContext } from "../../runtime/context.js";
import { beginLogin, finishLogin } from "./two-step-login.js";

/** The output of `login -o json`. */
interface FinishedLogin extends LoginStatus {
  /** Distinguishes it from a started login. */
  signed_in: true;
}

/** `login`: logs in even if a login is stored; in one step, or in two. */
export async function runLogin(options: TokenFlags, context: CommandContext): Promise<undefined> {
  const url = parseMcpUrlArgument(options.url);
  if (options.grant !== undefined) throw noUserLogin(url, options.grant);
  const home = context.home();
  if (repairHome(home)) context.io.say(`${escapeText(home)} was readable by other users; it is private again`);
  if (options.wait === false) return beginLogin(url, options, context);
  const reason = whyTwoSteps(options, context);
  if (reason !== undefined) {
    context.io.say(
      `login does not wait for the user, since ${reason}: show the URL to the user, then run the command in "finish"; to wait instead, add --browser none`,
    );
    return beginLogin(url, { ...options, ...(options.output === undefined && { json: true }) }, context);
  }
  const agent = await context.agent({ login: "always" });
  const token =
    typeof options.wait === "string"
      ? await finishLogin(agent, url, options.wait, options, context)
      : await agent.login(url, { scope: options.scope, signal: context.signal });
  const until = token.expiresAt === undefined ? "" : `, the token expires at ${token.expiresAt.toISOString()}`;
  const bound = token.tokenType === "DPoP" ? ", bound to a key of this machine (DPoP)" : "";
  const logins = await agent.status(url);
  const login = logins.find(({ account }) => account === (token.account ?? null));
  const refresh = login?.refreshable ? "" : "; without a refresh token, the next login is due then";
  const finished: Partial<FinishedLogin> = { signed_in: true, ...login };
  if (options.json || options.output === "json") await context.io.stdout.write(json(finished));
  context.io.say(
    `logged in at ${escapeText(token.server)} (issuer ${escapeText(token.issuer)})${until}${bound}${refresh}`,
  );
  return undefined;
}

/** Why a login stops after its first step without a flag: the user who must open the URL may not see it. */
function whyTwoSteps({ wait, flow, browser, isForAgent }: TokenFlags, { io }: CommandContext): string | undefined {
  if (typeof wait === "string") return undefined;
  if (isForAgent) return "an AI agent runs it";
  const canReachUser = browser !== undefined || flow !== undefined || Boolean(io.env["BROWSER"]);
  return canReachUser || (io.stdin.isTTY && io.stderr.isTTY) ? undefined : "there is no terminal";
}

function noUserLogin(url: string, grant: string): AgentAuthError {
  return new AgentAuthError("usage", `login is interactive, and --grant ${grant} is a machine grant`, {
    class: "usage",
    hint: `agentauth token ${shellWord(url)} --grant ${grant}, with the same flags`,
  });
}

const json = (value: unknown) => `${escapeJson(JSON.stringify(value))}\n`;
