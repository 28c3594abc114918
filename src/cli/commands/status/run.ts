import type { AgentAuthError } from "../../../errors.js";
import type { LoginStatus } from "../../../oauth/login/login-status.js";
import { escapeText, quote, shellWord } from "../../../redact.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { warnOfUnusable } from "../../clients/unusable-logins.js";
import { firstSteps } from "../../config/first-steps.js";
import type { StoredLoginFlags } from "../../flags/agent.js";
import { formatOf } from "../../output/chosen-format.js";
import type { ColumnSet } from "../../output/columns.js";
import { createWriter } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { sourcesLine } from "./status-line.js";

const COLUMNS = [
  { path: "server", header: "SERVER", kind: "name" },
  { path: "state", header: "STATE" },
  { path: "expires_at", header: "EXPIRES", kind: "time" },
  { path: "refreshable", header: "REFRESHABLE", kind: "bool" },
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
    { path: "stored_in", header: "STORED IN" },
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

/** `status`: the stored logins; exit code 4 if not logged in. */
export async function runStatus(options: StoredLoginFlags, context: CommandContext): Promise<number> {
  const { io } = context;
  const agent = await context.agent();
  const url = options.url === undefined ? undefined : parseMcpUrlArgument(options.url);
  const all = options.all === true;
  const unusable: AgentAuthError[] = [];
  const logins = await agent.status(url, { all, onUnusable: (error) => unusable.push(error) });
  const settings = context.settings();
  const format = formatOf(options, settings, io);
  const columns = logins.some(({ account }) => account !== null) ? [...COLUMNS, ACCOUNT] : COLUMNS;
  const writer = createWriter(format, { ...LOGINS, bounded: true, columns, jq: options.jq, now: context.now }, io);
  await writer.write(logins);
  await writer.end();
  io.say(sourcesLine(settings, context, { all, location: logins[0]?.stored_in }));
  for (const login of logins) {
    warnOfLostRefresh(login, io);
    const { server, reason } = login;
    if (reason !== null)
      io.say(`log in again at ${escapeText(server)}: the issuer rejected the login (${escapeText(reason)})`);
  }
  warnOfUnusable(unusable, context);
  if (logins.length === 0 && unusable.length > 0) return EXIT_CODES.store;
  if (logins.length === 0) {
    const where = url === undefined ? "" : ` at ${url}`;
    io.say(`Not logged in${where}. Run: agentauth login ${url === undefined ? "<mcp_url>" : shellWord(url)}`);
    const steps = url === undefined ? firstSteps(io.env) : undefined;
    if (steps !== undefined) io.say(steps);
  }
  return logins.some(isUsable) ? EXIT_CODES.ok : EXIT_CODES.auth;
}

/** Warns that the login may be lost when its token expires. */
function warnOfLostRefresh({ server, refresh_lost_at: at, state }: LoginStatus, io: CommandContext["io"]): void {
  if (at === null) return;
  const what = `the answer to the refresh of the token for ${quote(server)} was lost at ${at}`;
  const next =
    state === "expired"
      ? "the next use tries the refresh again"
      : "the token is used until it expires, then the refresh is tried again";
  io.warn(`${what}: ${next}, and an issuer that rotates refresh tokens may require a new login`);
}

function isUsable(login: LoginStatus): boolean {
  return login.state === "valid" || (login.state === "expired" && login.refreshable);
}
