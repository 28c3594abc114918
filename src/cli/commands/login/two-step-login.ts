import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { AgentAuthError } from "../../../errors.js";
import { codeTakerText } from "../../../login/messages.js";
import { reserveRedirect } from "../../../login/reserve-port.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { parseMcpUrl } from "../../../oauth/discovery/resource.js";
import type { AccessToken } from "../../../oauth/grant/access-token.js";
import type { PreparedLogin } from "../../../oauth/login/prepared-login.js";
import { quote, shellWord } from "../../../redact.js";
import { CodecError, decodeLogin, encodeLogin } from "../../../store/file/codec.js";
import { readPrivateFile, removeFile, writePrivateFile } from "../../../store/file/private-file.js";
import { onFiles } from "../../../store/store-error.js";
import { loginMethod } from "../../clients/login-method.js";
import type { TokenFlags } from "../../flags/agent.js";
import type { CommandContext } from "../../runtime/context.js";
import { flagText } from "../../runtime/hints.js";

/** How long an authorization server usually waits for the user. */
const LIFE_MS = 10 * 60 * 1000;

/** The output of `login --no-wait -o json`. */
interface StartedLogin {
  /** The id for `login --wait`. */
  login_id: string;
  /** Where the user logs in. */
  url: string;
  /** Until when the user can log in. */
  expires_at: string;
  /** The command that finishes the login. */
  finish: string;
}

/** `login --no-wait`: prints the login URL and stores the state for the second step. */
export async function beginLogin(url: string, options: TokenFlags, context: CommandContext): Promise<undefined> {
  if (options.flow === "device") {
    throw new AgentAuthError("usage", "--no-wait does not work with --flow device, which must poll for the token", {
      class: "usage",
      hint: "leave out one of the two",
    });
  }
  const agent = await context.agent({ login: "always" });
  const redirect = { host: options.redirectHost, port: options.redirectPort };
  const login = await agent.beginLogin(url, (preferred) => reserveRedirect({ ...redirect, preferred }), {
    scope: options.scope,
    signal: context.signal,
  });
  const id = randomBytes(9).toString("base64url");
  const { profile } = context.settings();
  await storeLogin(id, encodeLogin({ ...login, profile: profile.value }), context);
  const report: StartedLogin = {
    login_id: id,
    url: login.pending.authorizationUrl,
    expires_at: new Date(context.now() + LIFE_MS).toISOString(),
    finish: ["agentauth", "login", login.server, "--wait", id, ...flagsOf(login, profile.value)]
      .map(shellWord)
      .join(" "),
  };
  const { tokenEndpoint } = login.issuer;
  const warning = codeTakerText(report.url, { tokenEndpoint, promisesIss: login.pending.promisesIss }, flagText);
  if (warning !== undefined) context.io.say(warning);
  if (options.json || options.output === "json") {
    await context.io.stdout.write(`${JSON.stringify(report)}\n`);
  } else {
    await context.io.stdout.write(`${report.url}\n`);
    context.io.say(`run this in another window before you open the URL to log in: ${report.finish}`);
  }
  return undefined;
}

function storeLogin(id: string, text: string, context: CommandContext): Promise<void> {
  const path = pathOf(id, context);
  const folder = dirname(path);
  return onFiles(folder, async () => {
    removeExpired(folder, context);
    writePrivateFile(path, text);
  })();
}

/** Removes the files of unfinished logins that have expired. */
function removeExpired(folder: string, context: CommandContext): void {
  const left = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  for (const name of left) {
    const path = join(folder, name);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat && context.now() - stat.mtimeMs > LIFE_MS) removeFile(path);
  }
}

/** `login --wait <id>`: receives the callback at the redirect URI of the first step. */
export async function finishLogin(
  agent: AgentClient,
  url: string,
  id: string,
  options: TokenFlags,
  context: CommandContext,
): Promise<AccessToken> {
  const path = pathOf(id, context);
  const text = readPrivateFile(path);
  if (text === undefined) {
    throw new AgentAuthError("usage", `no started login ${quote(id)} is stored`, {
      class: "usage",
      hint: `agentauth login ${shellWord(url)} --no-wait starts one`,
    });
  }
  const login = readLogin(text, path, url);
  checkSameLogin(login, { id, url, options, context });
  const port = Number(new URL(login.pending.redirectUri).port);
  const method = loginMethod({ ...options, browser: "none", redirectPort: port }, context);
  const session = await method.open({
    resource: login.server,
    issuer: login.issuer.issuer,
    preferredRedirectUri: login.pending.redirectUri,
    signal: context.signal,
  });
  const token = await agent.finishLogin(login, session, { signal: context.signal });
  removeFile(path);
  return token;
}

interface SecondStep {
  id: string;
  url: string;
  options: TokenFlags;
  context: CommandContext;
}

/** The flags of the second command must not contradict the first. */
function checkSameLogin(login: ReturnType<typeof decodeLogin>, { id, url, options, context }: SecondStep): void {
  if (login.server !== parseMcpUrl(url).resource) {
    throw new AgentAuthError("usage", `the login ${quote(id)} is for ${login.server}, not for ${url}`, {
      class: "usage",
    });
  }
  const { profile } = context.settings();
  if (login.profile !== profile.value) {
    throw new AgentAuthError("usage", `the login ${quote(id)} belongs to the profile ${login.profile}`, {
      class: "usage",
      hint: `add --profile ${shellWord(login.profile)}`,
    });
  }
  const { accountHint } = options;
  if (accountHint !== undefined && accountHint !== login.account) {
    const whose = login.account === undefined ? "was started without an account" : `is for ${quote(login.account)}`;
    const message = `the login ${quote(id)} ${whose}, not for --account-hint ${quote(accountHint)}`;
    throw new AgentAuthError("usage", message, {
      class: "usage",
      hint: "leave it out, or start another login",
      remedy: { action: "login", server: url, account: accountHint },
    });
  }
}

/** The second step is another process, which may have another default profile. */
function flagsOf({ account }: PreparedLogin, profile: string): string[] {
  return [
    ...(profile === "default" ? [] : ["--profile", profile]),
    ...(account === undefined ? [] : ["--account-hint", account]),
  ];
}

function readLogin(text: string, path: string, url: string): ReturnType<typeof decodeLogin> {
  try {
    return decodeLogin(text);
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause;
    throw new AgentAuthError("store_failed", `the file ${path} cannot be used: ${cause.message}`, {
      class: "store",
      hint: "start the login again",
      remedy: { action: "login", server: url },
      cause,
    });
  }
}

function pathOf(id: string, context: CommandContext): string {
  if (!/^[\w-]{12}$/.test(id)) {
    throw new AgentAuthError("usage", `--wait ${quote(id)} is not a login id`, {
      class: "usage",
      hint: "start a login, which prints its id: agentauth login <mcp_url> --no-wait --json",
    });
  }
  return join(context.home(), "logins", `${id}.json`);
}
