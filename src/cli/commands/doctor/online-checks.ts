import { SORTING_ENCODINGS } from "../../../api/call-options.js";
import type { ManagementClient } from "../../../api/client.js";
import type { Listing } from "../../../api/listing.js";
import type { ListOptions, Page } from "../../../api/page.js";
import type { OpenSorting, Sorting } from "../../../api/types.js";
import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import { followSignal } from "../../../http/deadline.js";
import { isLoginNotRequired } from "../../../oauth/discovery/login-not-required.js";
import { parseMcpUrl } from "../../../oauth/model/resource.js";
import type { Settings } from "../../../profile/settings.js";
import { shellWord } from "../../../redact.js";
import { requireScope } from "../../listing/scope.js";
import type { CommandContext } from "../../runtime/context.js";
import { type CheckFinding, type DoctorFlags, failed, ok, skipped, warning } from "./check.js";

/** The outcome of the one request to the service. */
export interface ServiceReply {
  /** The request and its result, as text. */
  result: string;
  /** The order that the list has by itself. */
  sorting?: Sorting | undefined;
  /** Set if the request failed. */
  error?: AgentAuthError;
  /** The service's clock, from its `Date` header: milliseconds since the epoch. */
  date: number | undefined;
  /** This machine's clock at the response. */
  now: number;
}

/**
 * Finds out how the service reads the order of a list, which it does not document: by the order that its answers name. Asks
 * for the reverse of the order that it has by itself, first as the settings have it.
 */
export async function checkSorting(
  { error, sorting: usual }: ServiceReply,
  context: CommandContext,
): Promise<CheckFinding> {
  if (error) return skipped("the service cannot be asked");
  const settings = context.settings();
  const { account, domain, pool } = settings;
  if (!account && !domain && !pool) return skipped("no account, domain or pool is set to list");
  if (usual?.field == null) return skipped("the service does not name the order of its lists");
  const order = { field: usual.field, direction: usual.direction === "desc" ? "asc" : "desc" } as const;
  const set = settings.sorting?.value ?? "deep";
  for (const encoding of [set, ...SORTING_ENCODINGS.filter((one) => one !== set)]) {
    const other = context.with({ settings: { ...settings, sorting: { value: encoding, source: "doctor" } } });
    const { page } = await smallestList(await other.management(), settings, context.signal, order).catch(notRead);
    const { field, direction } = page?.sorting ?? {};
    if (field !== order.field || direction !== order.direction) continue;
    const found = `the service applies an order that is sent as ${encoding}`;
    return encoding === set
      ? ok(found)
      : warning(`${found}, not as ${set}`, setSorting(encoding, settings.profile.value));
  }
  const tried = SORTING_ENCODINGS.join(", ");
  return warning(`the service applies no order that is asked for; tried: ${tried}`, "--sort has no effect there");
}

/** A service may refuse what it does not read. */
function notRead(error: unknown): { page?: undefined } {
  if (isAgentAuthError(error) && error.class !== "aborted") return {};
  throw error;
}

function setSorting(encoding: string, profile: string): string {
  return `agentauth config set sorting ${encoding}${profile === "default" ? "" : ` --profile ${shellWord(profile)}`}`;
}

/** Sends the one request to the service. */
export async function fetchOnce(context: CommandContext): Promise<ServiceReply> {
  const settings = context.settings();
  const service = await context.management();
  try {
    const { result, response, page } = await smallestList(service, settings, context.signal);
    const { value = "" } = settings.baseUrl ?? {};
    const sorting = page?.sorting;
    return { result: `${value}: ${result}`, sorting, date: dateOf(response), now: context.now() };
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    return { result: "", error, date: dateOf(error.response), now: context.now() };
  }
}

/** The smallest list that the settings allow. */
async function smallestList(
  service: ManagementClient,
  settings: Settings,
  signal: AbortSignal,
  sort?: OpenSorting,
): Promise<{ result: string; response: Response | undefined; page?: Page<object> }> {
  const options = { pageSize: 1, limit: 1, signal, sort };
  const id = (name: "account" | "domain" | "pool") => requireScope(name, settings, "doctor --online");
  const { account, domain, pool } = settings;
  if (!account && !domain && !pool) return withoutScope(service, signal);
  const [what, listing] = account
    ? ["domains of the account", service.domains.list({ account_id: id("account") }, options)]
    : domain
      ? ["pools of the domain", service.pools.list({ domain_id: id("domain") }, options)]
      : ["devices of the pool", service.devices.list({ pool_id: id("pool") }, options as ListOptions)];
  const page = await (listing as Listing<object>).firstPage();
  return { result: `lists the ${what} (${page.pagination.item_count ?? "some"})`, response: page.response, page };
}

// The service's error codes for a request without its parameter.
const INCOMPLETE: ReadonlySet<string> = new Set(["bad_request", "required_value", "invalid_value"]);

/** Without an account, a domain or a pool there is nothing to list; an error about the missing parameter is a response too. */
async function withoutScope(
  service: ManagementClient,
  signal: AbortSignal,
): Promise<{ result: string; response: Response | undefined }> {
  const result = "responds; no account, domain or pool is set to list";
  try {
    return { result, response: await service.get("/api/v1/domain", [], { signal }) };
  } catch (error) {
    if (isAgentAuthError(error) && INCOMPLETE.has(error.code)) return { result, response: error.response };
    throw error;
  }
}

/** The clock of a server, in milliseconds since the epoch. */
function dateOf(response: Response | undefined): number | undefined {
  const time = Date.parse(response?.headers.get("date") ?? "");
  return Number.isNaN(time) ? undefined : time;
}

/** `Date` has whole seconds, and the response took time to arrive. */
const HARMLESS_S = 30;
/** Beyond this, tokens appear expired or not yet valid to the servers that check them. */
const HARMFUL_S = 300;

/** The difference between this machine's clock and a server's. */
export function judgeClock(whose: string, { date, now }: Pick<ServiceReply, "date" | "now">): CheckFinding {
  if (date === undefined) return skipped(`${whose} did not send its time`);
  const ahead = Math.round((now - date) / 1000);
  const result = `${Math.abs(ahead)} s ${ahead < 0 ? "behind" : "ahead of"} ${whose}`;
  const hint = "set the clock of this machine, preferably by NTP";
  if (Math.abs(ahead) <= HARMLESS_S) return ok(`agrees with ${whose} within 30 s`);
  return Math.abs(ahead) > HARMFUL_S ? failed(result, hint) : warning(result, hint);
}

/** Sends the server one request without a token, and uses only the time of its response. */
export async function checkServerClock(
  url: string,
  flags: DoctorFlags,
  context: CommandContext,
): Promise<CheckFinding> {
  const { allowPrivateNetwork, timeout = 10 } = flags;
  // Node 20 may collect the timer of `AbortSignal.any([AbortSignal.timeout(…)])` before it fires.
  const limit = followSignal(context.signal, timeout * 1000);
  try {
    const network = await context.network();
    const connection = network.connectTo(new URL(url), allowPrivateNetwork ? "all" : new Set());
    const response = await connection.fetch(url, { redirect: "manual", signal: limit.signal });
    await response.body?.cancel();
    return judgeClock("the MCP server", { date: dateOf(response), now: context.now() });
  } catch {
    return skipped("the MCP server did not respond");
  } finally {
    limit.release();
  }
}

/** Whether the server's issuer is found. */
export async function checkDiscovery(url: string, context: CommandContext): Promise<CheckFinding> {
  const { found, trace, error } = await (await context.agent()).discover(url, { signal: context.signal });
  if (isLoginNotRequired(error)) return ok(`${parseMcpUrl(url).resource} requires no login`);
  if (error) throw error;
  return ok(`the issuer of ${found?.server} is ${found?.issuer.issuer} (${trace.length} requests)`);
}

/** Whether a login for the server is stored, and can still be used. */
export async function checkLogin(url: string, context: CommandContext): Promise<CheckFinding> {
  const logIn = `agentauth login ${shellWord(url)}`;
  const [login] = await (await context.agent()).status(url);
  if (login === undefined) return warning("not logged in", logIn);
  const { state, refreshable, expires_at: end, reason } = login;
  const refresh = refreshable ? "refreshable" : "not refreshable";
  if (reason !== null) return warning(`the issuer rejected the login: ${reason}`, logIn);
  if (state === "valid") return ok(`valid until ${end ?? "the issuer revokes it"}, ${refresh}`);
  return refreshable ? ok(`expired ${end}, refreshable`) : warning(`expired ${end}, not refreshable`, logIn);
}
