import { SORTING_ENCODINGS } from "../../../api/types.js";
import { isAgentAuthError } from "../../../errors.js";
import { discardBody } from "../../../http/buffered-response.js";
import { followSignal } from "../../../http/deadline.js";
import { isLoginNotRequired } from "../../../oauth/discovery/challenge-request.js";
import { parseMcpUrl } from "../../../oauth/model/resource.js";
import { shellWord } from "../../../redact.js";
import { type Check, type CheckFinding, failed, ok, skipped, warning } from "./check.js";
import { checkCertificate } from "./network-checks.js";
import { type ServiceReply, smallestList } from "./service-reply.js";
import type { Checks, Subject } from "./subject.js";

/** The service, which needs `--online`, and the MCP server, where one is given. */
export const ONLINE_CHECKS = {
  service: ofService(({ error, result }, { service }) => {
    if (error) throw error;
    return ok(`${service.settings().baseUrl?.value}: ${result}`);
  }),
  clock: ofService(({ response, now }) => judgeClock("the service", response, now)),
  sorting: ofService(checkSorting),
  "service certificate": (subject) =>
    subject.options.online ? checkCertificate(subject.known.settings.baseUrl?.value, subject) : undefined,
  "server certificate": (subject) => checkCertificate(subject.url, subject),
  "server clock": ofServer(checkServerClock),

  /** Whether the server's issuer is found. */
  discovery: ofServer(async (url, { server }) => {
    const { found, trace, error } = await (await server.agent()).discover(url, { signal: server.signal });
    if (isLoginNotRequired(error)) return ok(`${parseMcpUrl(url).resource} requires no login`);
    if (error) throw error;
    return ok(`the issuer of ${found?.server} is ${found?.issuer.issuer} (${trace.length} requests)`);
  }),
} satisfies Checks;

/** What is stored for the MCP server. */
export const LOGIN_CHECKS = {
  /** Whether a login for the server is stored, and can still be used. */
  login: ofServer(async (url, { server }) => {
    const logIn = `agentauth login ${shellWord(url)}`;
    const [login] = await (await server.agent()).status(url);
    if (login === undefined) return warning("not logged in", logIn);
    const { state, refreshable, expires_at: end, reason } = login;
    const refresh = refreshable ? "refreshable" : "not refreshable";
    if (reason !== null) return warning(`the issuer rejected the login: ${reason}`, logIn);
    if (state === "valid") return ok(`valid until ${end ?? "the issuer revokes it"}, ${refresh}`);
    return refreshable ? ok(`expired ${end}, refreshable`) : warning(`expired ${end}, not refreshable`, logIn);
  }),
} satisfies Checks;

/** A check of the service's reply. */
function ofService(
  check: (reply: ServiceReply, subject: Subject) => CheckFinding | Promise<CheckFinding>,
): Check<Subject> {
  return async (subject) => {
    if (!subject.options.online) return skipped("no request was sent", "agentauth doctor --online sends one");
    if (subject.service.settings().baseUrl === undefined) return skipped("base_url is not set");
    return check(await subject.reply(), subject);
  };
}

/** A check that is for a run with the URL of an MCP server alone. */
function ofServer(check: (url: string, subject: Subject) => Promise<CheckFinding>): Check<Subject> {
  return (subject) => (subject.url === undefined ? undefined : check(subject.url, subject));
}

/**
 * Finds out how the service reads the order of a list, which it does not document: by the order that its answers name. Asks
 * for the reverse of the order that it has by itself, first as the settings have it.
 */
async function checkSorting({ error, page }: ServiceReply, { service: context }: Subject): Promise<CheckFinding> {
  if (error) return skipped("the service cannot be asked");
  if (page === undefined) return skipped("no account, domain or pool is set to list");
  const usual = page.sorting;
  if (usual?.field == null) return skipped("the service does not name the order of its lists");
  const settings = context.settings();
  const order = { field: usual.field, direction: usual.direction === "desc" ? "asc" : "desc" } as const;
  const set = settings.sorting?.value ?? "deep";
  for (const encoding of [set, ...SORTING_ENCODINGS.filter((one) => one !== set)]) {
    const other = context.with({ settings: { ...settings, sorting: { value: encoding, source: "doctor" } } });
    const sorted = await smallestList(await other.management(), settings, context.signal, order).catch(notRead);
    const { field, direction } = sorted.page?.sorting ?? {};
    if (field !== order.field || direction !== order.direction) continue;
    const found = `the service applies an order that is sent as ${encoding}`;
    if (encoding === set) return ok(found);
    const { value: profile } = settings.profile;
    const where = profile === "default" ? "" : ` --profile ${shellWord(profile)}`;
    return warning(`${found}, not as ${set}`, `agentauth config set sorting ${encoding}${where}`);
  }
  const tried = SORTING_ENCODINGS.join(", ");
  return warning(`the service applies no order that is asked for; tried: ${tried}`, "--sort has no effect there");
}

/** A service may refuse what it does not read. */
function notRead(error: unknown): { page?: undefined } {
  if (isAgentAuthError(error) && error.class !== "aborted") return {};
  throw error;
}

/** `Date` has whole seconds, and the response took time to arrive. */
const HARMLESS_S = 30;
/** Beyond this, tokens appear expired or not yet valid to the servers that check them. */
const HARMFUL_S = 300;

/** The difference between this machine's clock and a server's. */
function judgeClock(whose: string, response: Response | undefined, now: number): CheckFinding {
  const date = Date.parse(response?.headers.get("date") ?? "");
  if (Number.isNaN(date)) return skipped(`${whose} did not send its time`);
  const ahead = Math.round((now - date) / 1000);
  const result = `${Math.abs(ahead)} s ${ahead < 0 ? "behind" : "ahead of"} ${whose}`;
  const hint = "set the clock of this machine, preferably by NTP";
  if (Math.abs(ahead) <= HARMLESS_S) return ok(`agrees with ${whose} within 30 s`);
  return Math.abs(ahead) > HARMFUL_S ? failed(result, hint) : warning(result, hint);
}

/** Sends the server one request without a token, and uses only the time of its response. */
async function checkServerClock(url: string, { options, server: context }: Subject): Promise<CheckFinding> {
  const { timeout = 10 } = options;
  // Node 20 may collect the timer of `AbortSignal.any([AbortSignal.timeout(…)])` before it fires.
  const limit = followSignal(context.signal, timeout * 1000);
  try {
    const network = await context.network();
    const connection = network.connectTo(new URL(url), new Set());
    const response = await connection.fetch(url, { redirect: "manual", signal: limit.signal });
    await discardBody(response);
    return judgeClock("the MCP server", response, context.now());
  } catch {
    return skipped("the MCP server did not respond");
  } finally {
    limit.release();
  }
}
