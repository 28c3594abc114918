import { AgentAuthError } from "../../../errors.js";
import type { LoginStatus } from "../../../oauth/login/login-status.js";
import { quote, shellWord } from "../../../redact.js";
import { agentOf } from "../../clients/agent.js";
import { mcpAddress } from "../../clients/mcp-url.js";
import { firstSteps } from "../../config/first-steps.js";
import type { GrantFlags } from "../../flags/agent.js";
import type { ColumnSet } from "../../output/columns.js";
import { printObject } from "../../output/object.js";
import { createWriter } from "../../output/writer.js";
import { type Deps, settingsOf } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { formatOf } from "../list/run.js";
import { SIGN_OUTS, signOut, signOutOfAll } from "../logout/logout.js";
import { sourcesLine } from "./status-line.js";

const COLUMNS = [
  { path: "server", header: "SERVER", kind: "name" },
  { path: "state", header: "STATE" },
  { path: "expires_at", header: "ENDS", kind: "time" },
  { path: "refreshable", header: "RENEWABLE", kind: "bool" },
  { path: "grant", header: "GRANT" },
  { path: "scope", header: "SCOPE" },
  { path: "issuer", header: "ISSUER" },
] as const;
const ACCOUNT = { path: "account", header: "ACCOUNT" } as const;
const LOGINS: ColumnSet = {
  columns: COLUMNS,
  wideColumns: [
    ...COLUMNS,
    ACCOUNT,
    { path: "profile", header: "PROFILE" },
    { path: "token_type", header: "TOKEN" },
    { path: "client_id", header: "CLIENT" },
    { path: "stored_in", header: "KEPT IN" },
  ],
  fields: [
    "server",
    "state",
    "expires_at",
    "refreshable",
    "grant",
    "token_type",
    "account",
    "scope",
    "issuer",
    "profile",
    "client_id",
    "resource",
    "refresh_lost_at",
    "reason",
    "stored_in",
  ],
};

/** `status`: what is kept; exit code 4 where nobody is signed in. */
export async function runStatus(options: GrantFlags, deps: Deps): Promise<number> {
  const { io } = deps;
  const agent = await agentOf(options, deps, "when-present");
  const url = options.url === undefined ? undefined : mcpAddress(options.url);
  const all = options.all === true;
  const unusable: AgentAuthError[] = [];
  const logins = await agent.status(url, { all, onUnusable: (error) => unusable.push(error) });
  const settings = settingsOf(options, deps);
  const format = formatOf(options, settings, io);
  const columns = logins.some(({ account }) => account !== null) ? [...COLUMNS, ACCOUNT] : COLUMNS;
  const writer = createWriter(format, { ...LOGINS, bounded: true, columns, jq: options.jq, now: deps.now }, io);
  await writer.write(logins);
  await writer.end();
  io.say(sourcesLine(settings, deps, { all, location: logins[0]?.stored_in }));
  for (const login of logins) tellLost(login, io);
  tellUnusable(unusable, deps);
  if (logins.length === 0 && unusable.length > 0) return EXIT_CODES.store;
  if (logins.length === 0) {
    const where = url === undefined ? "" : ` at ${url}`;
    io.say(`nobody is signed in${where}; agentauth login ${url === undefined ? "<mcp_url>" : shellWord(url)}`);
    const steps = url === undefined ? firstSteps(io.env) : undefined;
    if (steps !== undefined) io.say(steps);
  }
  return logins.some(isAlive) ? EXIT_CODES.ok : EXIT_CODES.auth;
}

/** What cannot be read is there all the same, with its tokens. */
function tellUnusable(errors: readonly AgentAuthError[], { io, redactor }: Deps): void {
  for (const { message, hint } of errors) {
    io.warn(`a login that is kept here cannot be used: ${redactor.redact(message)}`);
    if (hint !== undefined) io.say(`hint: ${hint}`);
  }
}

/** The login may end with its token: better known before than after. */
function tellLost({ server, refresh_lost_at: at, state }: LoginStatus, io: Deps["io"]): void {
  if (at === null) return;
  const what = `the answer to the refresh of the token for ${quote(server)} was lost at ${at}`;
  const next =
    state === "expired"
      ? "the next use tries it again"
      : "the token is used until it expires, then the refresh is tried again";
  io.warn(`${what}: ${next}, and an issuer that takes a refresh token only once may want a new login`);
}

function isAlive(login: LoginStatus): boolean {
  return login.state === "valid" || (login.state === "expired" && login.refreshable);
}

/** `logout`: what is local goes first, and is gone whatever the issuer says. */
export async function runLogout(options: GrantFlags, deps: Deps): Promise<number | undefined> {
  if ((options.url === undefined) === (options.all !== true)) {
    throw new AgentAuthError("usage", "name one MCP server, or --all", {
      class: "usage",
      hint: "agentauth status lists them",
    });
  }
  if (options.all && options.accountHint !== undefined) {
    throw new AgentAuthError("usage", "--all is every account, and --account-hint names one", {
      class: "usage",
      hint: `leave out --all: agentauth logout <mcp_url> --account-hint ${shellWord(options.accountHint)}`,
    });
  }
  const settings = settingsOf(options, deps);
  const agent = await agentOf(options, deps, "when-present");
  const profile = settings.profile.value;
  const unusable: AgentAuthError[] = [];
  const onUnusable = (error: AgentAuthError) => unusable.push(error);
  const { outs, failure } =
    options.url === undefined
      ? await signOutOfAll(agent, await agent.status(undefined, { onUnusable }), profile, deps)
      : { outs: [await signOut(agent, { server: mcpAddress(options.url) }, profile, deps)], failure: undefined };
  if (options.output !== undefined || options.json === true || options.jq !== undefined) {
    const format = formatOf(options, settings, deps.io);
    const writer = createWriter(format, { ...SIGN_OUTS, bounded: true, jq: options.jq, now: deps.now }, deps.io);
    await writer.write(outs);
    await writer.end();
  }
  tellUnusable(unusable, deps);
  if (failure) throw failure;
  return unusable.length > 0 ? EXIT_CODES.store : undefined;
}

/** `introspect`. */
export async function runIntrospect(options: GrantFlags, deps: Deps): Promise<undefined> {
  const agent = await agentOf(options, deps, "when-present");
  const answer = await agent.introspect(mcpAddress(options.url ?? ""), { signal: deps.signal });
  const format = formatOf(options, settingsOf(options, deps), deps.io);
  await printObject(deps.io, format, answer, { jq: options.jq, showSecrets: options.showSecrets, now: deps.now });
  return undefined;
}
