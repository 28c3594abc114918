import { AgentAuthError } from "../../../errors.js";
import { escapeText, shellWord } from "../../../redact.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { repairHome } from "../../config/home-access.js";
import type { TokenFlags } from "../../flags/agent.js";
import { escapeJson } from "../../output/safe-json.js";
import type { CommandContext } from "../../runtime/context.js";
import { beginLogin, finishLogin } from "./two-step-login.js";

/** `login`: signs in, whatever is stored; in one step, or in two. */
export async function runLogin(options: TokenFlags, context: CommandContext): Promise<undefined> {
  const url = parseMcpUrlArgument(options.url);
  if (options.grant !== undefined) throw noSignIn(url, options.grant);
  const home = context.home();
  if (repairHome(home)) context.io.say(`${escapeText(home)} could be read by others, and is yours alone again`);
  if (options.wait === false) return beginLogin(url, options, context);
  const reason = whyTwoSteps(options, context);
  if (reason !== undefined) {
    context.io.say(
      `login does not wait for the user, since ${reason}: show the user the URL and run the command in "finish"; --browser none waits`,
    );
    return beginLogin(url, { ...options, ...(options.output === undefined && { json: true }) }, context);
  }
  const agent = await context.agent({ login: "always" });
  const token =
    typeof options.wait === "string"
      ? await finishLogin(agent, url, options.wait, options, context)
      : await agent.login(url, { scope: options.scope, signal: context.signal });
  const until = token.expiresAt === undefined ? "" : `, the token ends ${token.expiresAt.toISOString()}`;
  const bound = token.tokenType === "DPoP" ? ", bound to a key of this machine (DPoP)" : "";
  const logins = await agent.status(url);
  const login = logins.find(({ account }) => account === (token.account ?? null));
  const renewal = login?.refreshable ? "" : "; there is no refresh token, so it cannot be renewed";
  if (options.json || options.output === "json") await context.io.stdout.write(json({ signed_in: true, ...login }));
  context.io.say(
    `signed in at ${escapeText(token.server)} (issuer ${escapeText(token.issuer)})${until}${bound}${renewal}`,
  );
  return undefined;
}

/** Why a login ends with its first step though no flag says so: it would wait for a user who may not see the address. */
function whyTwoSteps({ wait, flow, browser, isForAgent }: TokenFlags, { io }: CommandContext): string | undefined {
  if (typeof wait === "string") return undefined;
  if (isForAgent) return "an AI agent runs it";
  const isReached = browser !== undefined || flow !== undefined || Boolean(io.env["BROWSER"]);
  return isReached || (io.stdin.isTTY && io.stderr.isTTY) ? undefined : "there is no terminal";
}

function noSignIn(url: string, grant: string): AgentAuthError {
  return new AgentAuthError("usage", `login signs a person in, and --grant ${grant} is for where there is none`, {
    class: "usage",
    hint: `agentauth token ${shellWord(url)} --grant ${grant}, with the same flags`,
  });
}

const json = (value: unknown) => `${escapeJson(JSON.stringify(value))}\n`;
