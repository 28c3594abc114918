import { isLoginNotRequired } from "../../../oauth/discovery/login-not-required.js";
import { parseMcpUrl } from "../../../oauth/discovery/resource.js";
import { shellWord } from "../../../redact.js";
import type { CommandContext } from "../../runtime/context.js";
import { type Check, type Finding, ok, skipped, warning } from "./check.js";
import { dateOf, judgeClock } from "./online-checks.js";
import type { DoctorFlags } from "./options.js";

/** The checks of one MCP server: whether its issuer is found, and whether a login for it is stored. */
export function mcpChecks(url: string, flags: DoctorFlags, context: CommandContext): Check[] {
  return [
    { name: "server clock", area: "online", run: () => serverClock(url, flags, context) },
    {
      name: "discovery",
      area: "online",
      async run() {
        const { found, trace, error } = await (await context.agent()).discover(url, { signal: context.signal });
        if (isLoginNotRequired(error)) return ok(`${parseMcpUrl(url).resource} requires no login`);
        if (error) throw error;
        return ok(`the issuer of ${found?.server} is ${found?.issuer.issuer} (${trace.length} requests)`);
      },
    },
    {
      name: "login",
      area: "store",
      async run() {
        const [login] = await (await context.agent()).status(url);
        return login ? loginFinding(login, url) : warning("not logged in", loginCommand(url));
      },
    },
  ];
}

/** Sends the server one request without a token, and uses only the time of its response. */
async function serverClock(url: string, flags: DoctorFlags, context: CommandContext): Promise<Finding> {
  try {
    const network = await context.network();
    const connection = network.connectTo(new URL(url), flags.allowPrivateNetwork ? "all" : new Set());
    const limit = AbortSignal.timeout((flags.timeout ?? 10) * 1000);
    const signal = AbortSignal.any([context.signal, limit]);
    const response = await connection.fetch(url, { redirect: "manual", signal });
    await response.body?.cancel();
    return judgeClock("the MCP server", { date: dateOf(response), now: context.now() });
  } catch {
    return skipped("the MCP server did not respond");
  }
}

function loginFinding(
  login: { state: string; refreshable: boolean; expires_at: string | null; reason: string | null },
  url: string,
): Finding {
  const { state, refreshable, expires_at: end, reason } = login;
  const refresh = refreshable ? "refreshable" : "not refreshable";
  if (reason !== null) return warning(`the issuer rejected the login: ${reason}`, loginCommand(url));
  if (state === "valid") return ok(`valid until ${end ?? "the issuer revokes it"}, ${refresh}`);
  return refreshable
    ? ok(`expired ${end}, refreshable`)
    : warning(`expired ${end}, not refreshable`, loginCommand(url));
}

function loginCommand(url: string): string {
  return `agentauth login ${shellWord(url)}`;
}
