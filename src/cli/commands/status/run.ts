import type { AgentAuthError } from "../../../errors.js";
import { describeLogin } from "../../../oauth/agent.js";
import type { Connection } from "../../../oauth/model/connection.js";
import { readUsable } from "../../../oauth/model/grant-summary.js";
import { parseMcpUrl } from "../../../oauth/model/resource.js";
import { isEngine } from "../../../profile/profile-settings.js";
import type { Settings } from "../../../profile/settings.js";
import { checkProfileName } from "../../../profile/settings-file.js";
import { readStoreChoice } from "../../../profile/store-choice.js";
import { escapeText, quote, shellWord } from "../../../redact.js";
import {
  isUsable,
  type PrintedLogin,
  parseMcpUrlArgument,
  printedLogin,
  printedPendingLogin,
  warnOfUnusable,
} from "../../clients/login-first.js";
import { finishCommand, type PendingLogin, pendingLogins } from "../../clients/started-logins.js";
import { ACCESS_TEXT, firstSteps, homeAccess } from "../../config/home-access.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { rowColumns } from "../../output/columns.js";
import { printPages, printRows } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";

const SERVER = { path: "server", header: "SERVER", kind: "name" } as const;
const COLUMNS = [
  SERVER,
  { path: "state", header: "STATE" },
  { path: "expires_at", header: "EXPIRES", kind: "time" },
  { path: "refreshable", header: "REFRESHABLE", kind: "bool" },
  { path: "grant", header: "GRANT" },
  { path: "scope", header: "SCOPE" },
  // Half an address is of no use: on a terminal a column is left out, from the last one on, before a name is cut.
  { path: "issuer", header: "ISSUER", kind: "name" },
] as const;
const PROFILE = { path: "profile", header: "PROFILE", kind: "name" } as const;
const ACCOUNT = { path: "account", header: "ACCOUNT", kind: "name" } as const;
const EXCEPTIONS = { path: "exceptions", header: "EXCEPTIONS", kind: "list" } as const;
const PENDING = [
  { path: "login_id", header: "LOGIN ID", kind: "name" },
  { path: "flow", header: "FLOW" },
] as const;
const LOGINS = rowColumns(COLUMNS, [
  ACCOUNT,
  PROFILE,
  { path: "token_type", header: "TOKEN" },
  { path: "client_id", header: "CLIENT" },
  EXCEPTIONS,
  ...PENDING,
  { path: "stored_in", header: "STORED IN" },
]);
const NAMES = ["profile", "server", "account"] as const;

/** `status`: the stored logins; exit code 4 if not logged in. */
export async function runStatus(
  { tenant, ...options }: StoredLoginFlags & { tenant?: string },
  run: CommandContext,
): Promise<number> {
  const { io } = run;
  const env = { ...io.env, ...(tenant !== undefined && { AGENTAUTH_STORE_TENANT: tenant }) };
  const context = tenant === undefined ? run : run.with({ io: { ...io, env } });
  const agent = await context.agent();
  const url = options.url === undefined ? undefined : parseMcpUrlArgument(options.url);
  const all = options.all === true;
  if (all && url === undefined && isEngine(context.storeChoice().value)) return runStatusOfAll(options, context);
  const unusable: AgentAuthError[] = [];
  const stored = await agent.status(url, { all, onUnusable: (error) => unusable.push(error) });
  const pending = findPending(url, options, context);
  const home = context.findHome() ?? "";
  const logins = [...stored.map(printedLogin).sort(byName), ...pending.map((one) => printedPendingLogin(one, home))];
  const settings = context.settings();
  const [profiles, pendings] = [all ? [PROFILE] : [], pending.length > 0 ? PENDING : []];
  const more = [
    ...(logins.some(({ account }) => account !== null) ? [ACCOUNT] : []),
    ...(logins.some(({ exceptions }) => exceptions.length > 0) ? [EXCEPTIONS] : []),
  ];
  const [, ...facts] = COLUMNS;
  const columns = [...profiles, ...COLUMNS, ...more, ...pendings];
  const screenColumns = [...profiles, SERVER, ...pendings, ...more, ...facts];
  await printRows(logins, { ...LOGINS, columns, screenColumns }, options, { ...context, io });
  io.say(sourcesLine(settings, context, { all, location: stored[0]?.stored_in ?? (await context.store()).location }));
  remark(logins, io);
  sayPending(pending, io);
  warnOfUnusable(unusable, context);
  if (stored.length === 0 && unusable.length > 0) return EXIT_CODES.store;
  if (logins.length === 0) {
    const where = url === undefined ? "" : ` at ${url}`;
    io.say(`Not logged in${where}. Run: agentauth login ${url === undefined ? "<mcp_url>" : shellWord(url)}`);
    const steps = url === undefined ? firstSteps(io.env) : undefined;
    if (steps !== undefined) io.say(steps);
  }
  return logins.some(isUsable) ? EXIT_CODES.ok : EXIT_CODES.auth;
}

/** Every login of an engine, a page at a time in its order: they may be more than fit into the memory. */
async function runStatusOfAll(options: StoredLoginFlags, context: CommandContext): Promise<number> {
  const { io, now } = context;
  const store = await context.store();
  const unusable: AgentAuthError[] = [];
  const onUnusable = (error: AgentAuthError) => void unusable.push(error);
  const pending = findPending(undefined, options, context);
  const columns = [PROFILE, ...COLUMNS, ACCOUNT, ...(pending.length > 0 ? PENDING : [])];
  let [count, anyUsable] = [0, false];
  const read = ({ profile, server, account }: Connection) =>
    readUsable(() => store.read({ profile, server, account: account ?? undefined }), onUnusable);
  async function* pages() {
    for await (const { items } of store.connections({ onUnusable })) {
      const grants = (await Promise.all(items.map(read))).filter((grant) => grant !== undefined);
      const logins = grants.map((grant) => printedLogin(describeLogin(grant, now(), store.location)));
      yield logins;
      remark(logins, io);
      count += logins.length;
      anyUsable ||= logins.some(isUsable);
    }
    yield pending.map((one) => printedPendingLogin(one, context.findHome() ?? ""));
  }
  await printPages(pages(), { ...LOGINS, columns }, options, context);
  io.say(sourcesLine(context.settings(), context, { all: true, location: store.location }));
  sayPending(pending, io);
  warnOfUnusable(unusable, context);
  if (count === 0 && unusable.length > 0) return EXIT_CODES.store;
  if (count === 0 && pending.length === 0) io.say("Not logged in. Run: agentauth login <mcp_url>");
  return anyUsable ? EXIT_CODES.ok : EXIT_CODES.auth;
}

/** A store has its own order, such as that of the digests of names. */
function byName(a: PrintedLogin, b: PrintedLogin): number {
  for (const name of NAMES) {
    const [one, other] = [a[name] ?? "", b[name] ?? ""];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** The started logins of the same choice: of the server, the account and the profile. */
function findPending(url: string | undefined, options: StoredLoginFlags, context: CommandContext): PendingLogin[] {
  const { accountHint, all } = options;
  const profile = context.settings().profile.value;
  const server = url === undefined ? undefined : parseMcpUrl(url).resource;
  return pendingLogins(context).filter(
    ({ login }) =>
      (all || login.profile === profile) &&
      (server === undefined || login.server === server) &&
      (accountHint === undefined || login.account === accountHint),
  );
}

function remark(logins: readonly PrintedLogin[], io: CommandContext["io"]): void {
  for (const login of logins) {
    warnOfLostRefresh(login, io);
    const { server, reason } = login;
    if (reason !== null)
      io.say(`log in again at ${escapeText(server)}: the issuer rejected the login (${escapeText(reason)})`);
  }
}

function sayPending(pending: readonly PendingLogin[], io: CommandContext["io"]): void {
  for (const { id, login, expiresAt } of pending) {
    const until = new Date(expiresAt).toISOString();
    io.say(`a login with the flow ${login.flow ?? "browser"} is pending until ${until}: ${finishCommand(id, login)}`);
  }
}

/** Warns that the login may be lost when its token expires. */
function warnOfLostRefresh({ server, refresh_lost_at: at, state }: PrintedLogin, io: CommandContext["io"]): void {
  if (at === null) return;
  const what = `the answer to the refresh of the token for ${quote(server)} was lost at ${at}`;
  const next =
    state === "expired"
      ? "the next use tries the refresh again"
      : "the token is used until it expires, then the refresh is tried again";
  io.warn(`${what}: ${next}, and an issuer that rotates refresh tokens may require a new login`);
}

/**
 * The logins that a command read, and the sources of that choice, in one line.
 *
 * @param location the location that the store reports; default: the home folder
 */
export function sourcesLine(
  { profile, issuer }: Settings,
  context: CommandContext,
  { all = false, location = context.findHome() ?? "" } = {},
): string {
  const home = context.findHome();
  const store = readStoreChoice(profile.value, context.io.env, home);
  const { value, source } = checkProfileName(profile, home);
  const whose = all ? "all profiles (--all)" : `profile ${value} (${source})`;
  // Who can read the folder is no matter of a store elsewhere.
  const access = home === undefined || isEngine(store.value) ? undefined : homeAccess(home);
  const accessText =
    access === undefined
      ? ""
      : `, ${access === "private" || access === "unchecked" ? "" : "which "}${ACCESS_TEXT[access]}`;
  const stored = store.value === "memory" ? "nothing is stored after a command ends" : `${location}${accessText}`;
  const only = issuer === undefined ? "" : `, issuer ${issuer.value} (${issuer.source})`;
  return `${whose}${only}, store ${store.value} (${store.source}): ${stored}`;
}
