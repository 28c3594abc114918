import { shellWord } from "../../../redact.js";
import type { CommandContext } from "../../runtime/context.js";
import { type Check, type Finding, ok, skipped, warning } from "./check.js";
import { dateOf, judgeClock } from "./online-checks.js";
import type { DoctorFlags } from "./options.js";

/** The checks of one MCP server: whether its issuer is found, and whether somebody is signed in there. */
export function mcpChecks(url: string, flags: DoctorFlags, context: CommandContext): Check[] {
  return [
    { name: "server clock", area: "online", run: () => serverClock(url, flags, context) },
    {
      name: "discovery",
      area: "online",
      async run() {
        const { found, trace, error } = await (await context.agent()).discover(url, { signal: context.signal });
        if (error) throw error;
        return ok(`${found?.server} has its tokens from ${found?.issuer.issuer} (${trace.length} requests)`);
      },
    },
    {
      name: "login",
      area: "store",
      async run() {
        const [login] = await (await context.agent()).status(url);
        return login ? judge(login, url) : warning("nobody is signed in", signIn(url));
      },
    },
  ];
}

/** Asks the server once, without a token, and looks at nothing but the time of its answer. */
async function serverClock(url: string, flags: DoctorFlags, context: CommandContext): Promise<Finding> {
  try {
    const network = await context.network();
    const way = network.connectTo(new URL(url), flags.allowPrivateNetwork ? "all" : new Set());
    const limit = AbortSignal.timeout((flags.timeout ?? 10) * 1000);
    const signal = AbortSignal.any([context.signal, limit]);
    const response = await way.fetch(url, { redirect: "manual", signal });
    await response.body?.cancel();
    return judgeClock("the MCP server", { date: dateOf(response), now: context.now() });
  } catch {
    return skipped("the MCP server gave no answer");
  }
}

function judge(
  login: { state: string; refreshable: boolean; expires_at: string | null; reason: string | null },
  url: string,
): Finding {
  const { state, refreshable, expires_at: end, reason } = login;
  const renewable = refreshable ? "renewable" : "not renewable";
  if (state === "over") return warning(`signed out by the issuer: ${reason ?? "no reason is known"}`, signIn(url));
  if (state === "valid") return ok(`good until ${end ?? "the issuer says otherwise"}, ${renewable}`);
  return refreshable ? ok(`ended ${end}, renewable`) : warning(`ended ${end}, not renewable`, signIn(url));
}

function signIn(url: string): string {
  return `agentauth login ${shellWord(url)}`;
}
