import { isAgentAuthError } from "../../errors.js";
import { type Events, knownCodeOf, observe, reasonOf, serverOriginOf } from "../../telemetry/emit.js";
import type { EventFields } from "../../telemetry/events.js";
import type { Grant } from "../model/grant.js";

type LoginFields = Omit<EventFields<"login">, "durationMs">;

/**
 * Runs a login and emits one event for it; none for one that the user is to begin once more.
 *
 * @param login its server, how the user logs in, and the issuer if it is known
 */
export function observeLogin<T extends Grant | { again: unknown }>(
  events: Events,
  { server, flow, issuer }: { server: string; flow: LoginFields["flow"]; issuer?: string },
  work: () => Promise<T>,
): Promise<T> {
  return observe(events, "login", work, (ended): LoginFields | undefined => {
    const about = { flow, issuer, server: serverOriginOf(server) };
    if ("result" in ended)
      return "again" in ended.result ? undefined : { outcome: "completed", ...about, issuer: ended.result.issuer };
    const { error } = ended;
    const isAborted = isAgentAuthError(error) && error.class === "aborted";
    return { outcome: isAborted ? "aborted" : "failed", reason: reasonOf(error), code: knownCodeOf(error), ...about };
  });
}
