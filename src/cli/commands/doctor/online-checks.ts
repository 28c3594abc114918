import type { ManagementClient } from "../../../api/client.js";
import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import { requireScope } from "../../listing/scope.js";
import type { CommandContext } from "../../runtime/context.js";
import type { Settings } from "../../runtime/settings.js";
import { type Check, type Finding, failed, ok, skipped, warning } from "./check.js";

/** What came of the one request to the service. */
interface Reached {
  /** What was asked and what came, in words. */
  told: string;
  /** Present where the service's answer was a failure, or there was none. */
  error?: AgentAuthError;
  /** The service's clock, from its `Date` header: milliseconds since the epoch. */
  date: number | undefined;
  /** This machine's clock when the answer came. */
  now: number;
}

/** The checks that ask the service; it is asked once, and only where that was wished for. */
export function onlineChecks(isOnline: boolean, context: CommandContext): Check[] {
  let answer: Promise<Reached> | undefined;
  const ask = () => {
    answer ??= reach(context);
    return answer;
  };
  const check = (name: string, judge: (reached: Reached) => Finding): Check => ({
    name,
    area: "online",
    async run() {
      if (!isOnline) return skipped("nothing was asked over the network", "agentauth doctor --online asks");
      return context.settings().baseUrl === undefined ? skipped("there is no base_url to ask") : judge(await ask());
    },
  });
  return [
    check("service", ({ error, told }) => {
      if (error) throw error;
      return ok(told);
    }),
    check("clock", (reached) => judgeClock("the service", reached)),
  ];
}

async function reach(context: CommandContext): Promise<Reached> {
  const settings = context.settings();
  const service = await context.management();
  try {
    const { told, response } = await smallest(service, settings, context.signal);
    return { told: `${settings.baseUrl?.value}: ${told}`, date: dateOf(response), now: context.now() };
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    return { told: "", error, date: dateOf(error.response), now: context.now() };
  }
}

/** The smallest list that the settings allow. */
async function smallest(
  service: ManagementClient,
  settings: Settings,
  signal: AbortSignal,
): Promise<{ told: string; response: Response | undefined }> {
  const options = { pageSize: 1, maxItems: 1, signal };
  const id = (name: "account" | "domain" | "pool") => requireScope(name, settings[name], "doctor --online");
  const { account, domain, pool } = settings;
  if (!account && !domain && !pool) return withoutScope(service, signal);
  const [what, listing] = account
    ? ["domains of the account", service.domains.list({ account_id: id("account") }, options)]
    : domain
      ? ["pools of the domain", service.pools.list({ domain_id: id("domain") }, options)]
      : ["devices of the pool", service.devices.list({ pool_id: id("pool") }, options)];
  for await (const page of (listing as ReturnType<ManagementClient["pools"]["list"]>).pages()) {
    return { told: `lists the ${what} (${page.pagination.item_count ?? "some"})`, response: page.response };
  }
  return { told: `lists the ${what} (none)`, response: undefined };
}

// The service's words for a question that lacks its parameter.
const INCOMPLETE: ReadonlySet<string> = new Set(["bad_request", "required_value", "invalid_value"]);

/** Without an account, a domain or a pool no list can be asked for; that the service says so is an answer as well. */
async function withoutScope(
  service: ManagementClient,
  signal: AbortSignal,
): Promise<{ told: string; response: Response | undefined }> {
  const told = "answers; no account, domain or pool is set to list";
  try {
    return { told, response: await service.get("/api/v1/domain", [], { signal }) };
  } catch (error) {
    if (isAgentAuthError(error) && INCOMPLETE.has(error.code)) return { told, response: error.response };
    throw error;
  }
}

/** What the clock of a server said, in milliseconds since the epoch. */
export function dateOf(response: Response | undefined): number | undefined {
  const time = Date.parse(response?.headers.get("date") ?? "");
  return Number.isNaN(time) ? undefined : time;
}

/** `Date` has whole seconds, and the answer was under way. */
const UNNOTICED_S = 30;
/** Beyond this, tokens look ended or not yet begun to whoever checks them. */
const HARMFUL_S = 300;

/** How far this machine's clock is from that of whoever answered. */
export function judgeClock(whose: string, { date, now }: Pick<Reached, "date" | "now">): Finding {
  if (date === undefined) return skipped(`${whose} did not tell the time`);
  const ahead = Math.round((now - date) / 1000);
  const told = `${Math.abs(ahead)} s ${ahead < 0 ? "behind" : "ahead of"} ${whose}`;
  const hint = "set the clock of this machine, by NTP at best";
  if (Math.abs(ahead) <= UNNOTICED_S) return ok(`agrees with ${whose} within 30 s`);
  return Math.abs(ahead) > HARMFUL_S ? failed(told, hint) : warning(told, hint);
}
