import { follow } from "../../../http/deadline.js";
import { isLoginNotRequired } from "../../../oauth/discovery/login-not-required.js";
import { parseMcpUrl } from "../../../oauth/model/resource.js";
import { shellWord } from "../../../redact.js";
import type { CommandContext } from "../../runtime/context.js";
import { type Finding, ok, skipped, warning } from "./check.js";
import { dateOf, judgeClock } from "./online-checks.js";
import type { DoctorFlags } from "./options.js";

/** Sends the server one request without a token, and uses only the time of its response. */
export async function checkServerClock(url: string, flags: DoctorFlags, context: CommandContext): Promise<Finding> {
  const { allowPrivateNetwork, timeout = 10 } = flags;
  // Node 20 may collect the timer of `AbortSignal.any([AbortSignal.timeout(…)])` before it fires.
  const limit = follow(context.signal, timeout * 1000);
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
export async function checkDiscovery(url: string, context: CommandContext): Promise<Finding> {
  const { found, trace, error } = await (await context.agent()).discover(url, { signal: context.signal });
  if (isLoginNotRequired(error)) return ok(`${parseMcpUrl(url).resource} requires no login`);
  if (error) throw error;
  return ok(`the issuer of ${found?.server} is ${found?.issuer.issuer} (${trace.length} requests)`);
}

/** Whether a login for the server is stored, and can still be used. */
export async function checkLogin(url: string, context: CommandContext): Promise<Finding> {
  const logIn = `agentauth login ${shellWord(url)}`;
  const [login] = await (await context.agent()).status(url);
  if (login === undefined) return warning("not logged in", logIn);
  const { state, refreshable, expires_at: end, reason } = login;
  const refresh = refreshable ? "refreshable" : "not refreshable";
  if (reason !== null) return warning(`the issuer rejected the login: ${reason}`, logIn);
  if (state === "valid") return ok(`valid until ${end ?? "the issuer revokes it"}, ${refresh}`);
  return refreshable ? ok(`expired ${end}, refreshable`) : warning(`expired ${end}, not refreshable`, logIn);
}
