import type { ManagementClient } from "../../../api/client.js";
import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import { requireScope } from "../../listing/scope.js";
import type { CommandContext } from "../../runtime/context.js";
import type { Settings } from "../../runtime/settings.js";
import { type Check, type Finding, failed, ok, skipped, warning } from "./check.js";

/** The outcome of the one request to the service. */
interface ServiceReply {
  /** The request and its result, as text. */
  result: string;
  /** Set if the request failed. */
  error?: AgentAuthError;
  /** The service's clock, from its `Date` header: milliseconds since the epoch. */
  date: number | undefined;
  /** This machine's clock at the response. */
  now: number;
}

/** The checks of the service; they share one request, and need `--online`. */
export function onlineChecks(isOnline: boolean, context: CommandContext): Check[] {
  let reply: Promise<ServiceReply> | undefined;
  const request = () => {
    reply ??= fetchOnce(context);
    return reply;
  };
  const check = (name: string, judge: (reply: ServiceReply) => Finding): Check => ({
    name,
    area: "online",
    async run() {
      if (!isOnline) return skipped("no request was sent", "agentauth doctor --online sends one");
      return context.settings().baseUrl === undefined ? skipped("base_url is not set") : judge(await request());
    },
  });
  return [
    check("service", ({ error, result }) => {
      if (error) throw error;
      return ok(result);
    }),
    check("clock", (reply) => judgeClock("the service", reply)),
  ];
}

async function fetchOnce(context: CommandContext): Promise<ServiceReply> {
  const settings = context.settings();
  const service = await context.management();
  try {
    const { result, response } = await smallestList(service, settings, context.signal);
    return { result: `${settings.baseUrl?.value}: ${result}`, date: dateOf(response), now: context.now() };
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
): Promise<{ result: string; response: Response | undefined }> {
  const options = { pageSize: 1, maxItems: 1, signal };
  const id = (name: "account" | "domain" | "pool") => requireScope(name, settings, "doctor --online");
  const { account, domain, pool } = settings;
  if (!account && !domain && !pool) return withoutScope(service, signal);
  const [what, listing] = account
    ? ["domains of the account", service.domains.list({ account_id: id("account") }, options)]
    : domain
      ? ["pools of the domain", service.pools.list({ domain_id: id("domain") }, options)]
      : ["devices of the pool", service.devices.list({ pool_id: id("pool") }, options)];
  for await (const page of (listing as ReturnType<ManagementClient["pools"]["list"]>).pages()) {
    return { result: `lists the ${what} (${page.pagination.item_count ?? "some"})`, response: page.response };
  }
  return { result: `lists the ${what} (none)`, response: undefined };
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
export function dateOf(response: Response | undefined): number | undefined {
  const time = Date.parse(response?.headers.get("date") ?? "");
  return Number.isNaN(time) ? undefined : time;
}

/** `Date` has whole seconds, and the response took time to arrive. */
const HARMLESS_S = 30;
/** Beyond this, tokens appear expired or not yet valid to the servers that check them. */
const HARMFUL_S = 300;

/** The difference between this machine's clock and a server's. */
export function judgeClock(whose: string, { date, now }: Pick<ServiceReply, "date" | "now">): Finding {
  if (date === undefined) return skipped(`${whose} did not send its time`);
  const ahead = Math.round((now - date) / 1000);
  const result = `${Math.abs(ahead)} s ${ahead < 0 ? "behind" : "ahead of"} ${whose}`;
  const hint = "set the clock of this machine, preferably by NTP";
  if (Math.abs(ahead) <= HARMLESS_S) return ok(`agrees with ${whose} within 30 s`);
  return Math.abs(ahead) > HARMFUL_S ? failed(result, hint) : warning(result, hint);
}
