import { type AgentAuthError, usageError } from "../../../errors.js";
import { parseUrl } from "../../../http/address.js";
import type { AgentClient, LoginStatus } from "../../../oauth/agent.js";
import { isLoginNotRequired } from "../../../oauth/discovery/challenge-request.js";
import { handOver, takeHandOver } from "../../../oauth/hand-over.js";
import { knownIssuer } from "../../../oauth/model/authorization-params.js";
import type { AccessToken } from "../../../oauth/model/grant.js";
import { parseMcpUrl } from "../../../oauth/model/resource.js";
import { escapeText, quote, shellWord } from "../../../redact.js";
import { type PrintedLogin, parseMcpUrlArgument, printedLogin, retryRevocations } from "../../clients/login-first.js";
import { repairHome } from "../../config/home-access.js";
import type { TokenFlags } from "../../flags/agent.js";
import { escapeJson } from "../../output/value.js";
import type { CommandContext } from "../../runtime/context.js";
import { loginCommand } from "../../runtime/hints.js";
import { finishLogin } from "./finish-login.js";
import { checkHandOverFlags, openLoginClient, printHandOver } from "./hand-over.js";
import { beginAgain, beginLogin } from "./two-step-login.js";

/** The output of `login -o json`. */
interface FinishedLogin extends PrintedLogin {
  /** Distinguishes it from a started login. */
  logged_in: true;
}

/** The output of `login -o json` at a server that requires no login. */
interface NoLogin {
  /** There is no login. */
  logged_in: false;
  /** The server answers requests without a token. */
  login_required: false;
  /** The MCP server, canonical. */
  server: string;
}

/** `login`, at a server that may require none; exit code 4 where the user has to open another URL. */
export async function runLogin(parsedFlags: TokenFlags, run: CommandContext): Promise<number | undefined> {
  const options = withServer(parsedFlags);
  const context = run.with({ acceptsNewProfile: true });
  try {
    return await logIn(options, context);
  } catch (error) {
    if (!isLoginNotRequired(error) || options.handOver !== undefined) throw error;
    const { resource: server } = parseMcpUrl(options.url);
    const report: NoLogin = { logged_in: false, login_required: false, server };
    if (wantsJson(options, context)) await context.io.stdout.write(json(report));
    context.io.say(`${escapeText(server)} requires no login`);
    return undefined;
  }
}

/** In `login --hand-over <mcp_url>` the parser takes the server for the file. */
function withServer(options: TokenFlags): TokenFlags {
  const { url, handOver } = options as Partial<TokenFlags>;
  const isTaken = url === undefined && typeof handOver === "string" && parseUrl(handOver) !== undefined;
  return isTaken ? { ...options, url: handOver, handOver: true } : options;
}

/** An agent reads JSON, whether it asked for it or not. */
function wantsJson(options: TokenFlags, context: CommandContext): boolean {
  const isGiven = options.json !== undefined || options.output !== undefined;
  return isGiven ? options.json === true || options.output === "json" : whyTwoSteps(options, context) !== undefined;
}

/** `login`: logs in even if a login is stored, at a server or at the identity provider; in one step, or in two. */
async function logIn(options: TokenFlags, context: CommandContext): Promise<number | undefined> {
  const { scope } = options;
  const { signal } = context;
  const reason = whyTwoSteps(options, context);
  checkHandOverFlags(options, context, options.wait === false ? undefined : reason);
  const idp = options.idp === undefined ? undefined : checkedIdp(String(options.idp), options);
  if (idp === undefined && (options.url as string | undefined) === undefined) throw await noServer(context);
  const url = idp ?? parseMcpUrlArgument(options.url);
  const home = context.findHome();
  if (home !== undefined && repairHome(home))
    context.io.say(`${escapeText(home)} was readable by other users; it is private again`);
  if (options.callbackUrl !== undefined && typeof options.wait !== "string")
    throw usageError(
      "--callback-url finishes a login in two steps",
      "add --wait <login_id>, which login --no-wait printed",
    );
  if (options.grant !== undefined) return storeMachineGrant(url, options, context);
  if (options.wait === false) return beginLogin(url, options, context);
  if (reason !== undefined) {
    context.io.say(
      `login does not wait for the user, since ${reason}: show the URL to the user, then run the command in "finish"; to wait instead, add --browser none`,
    );
    return beginLogin(url, { ...options, ...(options.output === undefined && { json: true }) }, context);
  }
  const { agent, store } = await openLoginClient(options, context);
  // While the user logs in.
  const retried = retryRevocations(agent, context);
  if (typeof options.wait === "string") {
    const finished = await finishLogin(agent, { id: options.wait, url, options, context });
    if ("rejected" in finished) return beginAgain(url, finished.rejected, options, context);
    if (store !== undefined) await printHandOver(await takeHandOver(agent, store), options, context);
    else
      await (idp === undefined
        ? reportLogin(agent, finished.token, options, context)
        : reportIdpLogin(await storedIdpLogin(agent, finished.token), options, context));
  } else if (store !== undefined)
    await printHandOver(await handOver(agent, store, url, { scope, signal }), options, context);
  else if (idp === undefined) await reportLogin(agent, await agent.login(url, { scope, signal }), options, context);
  else await reportIdpLogin(await agent.loginIdp({ scope, signal }), options, context);
  await retried;
  return undefined;
}

/** `login --grant`: gets the token of a machine grant and stores how to get the next one; no user is asked. */
async function storeMachineGrant(url: string, options: TokenFlags, context: CommandContext): Promise<undefined> {
  const step = options.wait === false ? "--no-wait" : typeof options.wait === "string" ? "--wait" : undefined;
  if (step !== undefined)
    throw usageError(`--grant ${options.grant} and ${step} do not go together: no user logs in`, `leave ${step} out`);
  const { scope } = options;
  const agent = await context.agent({ login: "never", storesGrant: true });
  const token = await agent.token(url, { scope, forceRefresh: true, signal: context.signal });
  await reportLogin(agent, token, options, context);
}

/** The identity provider that `--idp` names, with no flag that is for a server. */
function checkedIdp(idp: string, { url, grant, clientId }: Partial<TokenFlags>): string {
  const found = Object.entries({ "a server": url, "--grant": grant }).find(([, value]) => value !== undefined)?.[0];
  if (found !== undefined) throw usageError(`--idp and ${found} do not go together`, "leave out one of the two");
  if (clientId !== undefined)
    throw usageError(
      "--client-id is the client of a server",
      "name that of the identity provider: --idp-client-id <id>",
    );
  if (parseUrl(idp) === undefined)
    throw usageError(`--idp ${quote(idp)} is no address`, "name the issuer, such as https://idp.example");
  return idp;
}

async function storedIdpLogin(agent: AgentClient, { server, account }: AccessToken): Promise<LoginStatus> {
  const login = (await agent.status(server)).find((one) => one.account === account);
  if (login === undefined) throw new TypeError("the login at the identity provider is not stored");
  return login;
}

async function reportIdpLogin(status: LoginStatus, options: TokenFlags, context: CommandContext): Promise<void> {
  const login = printedLogin(status);
  const finished: FinishedLogin = { logged_in: true, ...login };
  if (options.json || options.output === "json") await context.io.stdout.write(json(finished));
  const next = "agentauth token <mcp_url> needs no login where the issuer takes assertions of this identity provider";
  const lasting = login.refreshable ? "" : `; it comes without a refresh token: log in again at ${login.expires_at}`;
  context.io.say(`logged in at the identity provider ${escapeText(login.issuer)}: ${next}${lasting}`);
}

async function reportLogin(
  agent: AgentClient,
  token: AccessToken,
  options: TokenFlags,
  context: CommandContext,
): Promise<void> {
  const until = token.expiresAt === undefined ? "" : `\nthe token expires at ${token.expiresAt.toISOString()}`;
  const bound = token.tokenType === "DPoP" ? ", bound to a key of this machine (DPoP)" : "";
  const logins = await agent.status(token.server);
  const login = logins.find(({ account }) => account === (token.account ?? null));
  const isLasting = login?.refreshable || token.expiresAt === undefined || options.grant !== undefined;
  const refresh = isLasting ? "" : shortLived(token, login, context);
  const finished: Partial<FinishedLogin> = { logged_in: true, ...(login && printedLogin(login)) };
  if (options.json || options.output === "json") await context.io.stdout.write(json(finished));
  context.io.say(
    `${options.grant === undefined ? "logged in at" : `stored the grant ${options.grant} for`} ${escapeText(token.server)} (issuer ${escapeText(token.issuer)})${until}${bound}${refresh}`,
  );
}

/** What a login without a refresh token leads to, and what may get one. */
function shortLived(
  { server, issuer, account }: AccessToken,
  login: LoginStatus | undefined,
  context: CommandContext,
): string {
  const { offlineParams: authorizationParams = {} } = knownIssuer(issuer);
  const sent = login?.exceptions.map(({ value }) => value) ?? [];
  const isKnown = Object.entries(authorizationParams).some(([name, value]) => !sent.includes(`${name}=${value}`));
  const how = isKnown
    ? `, or now for one: ${loginCommand({ action: "login", server, account, authorizationParams }, context.hintContext)}`
    : ", or at once with an --authorize-param that the issuer returns one for";
  return `; it comes without a refresh token: log in again then${how}`;
}

/** Why a login stops after its first step without a flag: the user who must open the URL may not see it. */
function whyTwoSteps({ wait, flow, browser, isForAgent }: TokenFlags, { io }: CommandContext): string | undefined {
  if (typeof wait === "string") return undefined;
  if (isForAgent) return "an AI agent runs it";
  const canReachUser = browser !== undefined || flow !== undefined || Boolean(io.env["BROWSER"]);
  return canReachUser || (io.stdin.isTTY && io.stderr.isTTY) ? undefined : "there is no terminal";
}

/** The form of the command, with the servers where a login is stored. */
async function noServer(context: CommandContext): Promise<AgentAuthError> {
  const profile = context.settings().profile.value;
  const logins = await context
    .store()
    .then((store) => store.list({ profile }))
    .catch(() => []);
  const servers = [...new Set(logins.map(({ server }) => server))].map((server) => shellWord(server));
  const known = servers.length === 0 ? "" : `; servers with a stored login: ${servers.join(", ")}`;
  return usageError(
    "no MCP server is named",
    `agentauth login <mcp_url>, such as agentauth login https://mcp.example/mcp${known}`,
  );
}

const json = (value: unknown) => `${escapeJson(JSON.stringify(value))}\n`;
