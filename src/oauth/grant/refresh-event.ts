import { type AgentAuthError, isAgentAuthError } from "../../errors.js";
import { type Events, knownCodeOf, observe, reasonOf, serverOriginOf } from "../../telemetry/emit.js";
import type { EventFields } from "../../telemetry/events.js";
import type { Grant, GrantKey } from "../model/grant.js";
import { isLostAnswer } from "./refresh-outcome.js";

type RefreshFields = Omit<EventFields<"refresh">, "durationMs">;

/** A grant with a valid token, and where it came from. */
export interface Served {
  grant: Grant;
  source: EventFields<"token">["source"];
}

/** Gets a grant for a caller, and emits one event for it. */
export async function observeToken(
  events: Events,
  { server }: Pick<GrantKey, "server">,
  serve: () => Promise<Served>,
): Promise<Grant> {
  try {
    const { grant, source } = await serve();
    events.emit("token", () => ({ type: "token", source, issuer: grant.issuer, server: serverOriginOf(server) }));
    return grant;
  } catch (error) {
    events.emit("token", () => ({
      type: "token",
      source: "none",
      code: knownCodeOf(error),
      server: serverOriginOf(server),
    }));
    throw error;
  }
}

/** How a refresh that returned a grant ended. */
export interface RefreshEnd {
  /** The error of the issuer if the grant is that of another process; undefined if nothing was sent. */
  readonly ended: "refreshed" | AgentAuthError | undefined;
}

/** Runs a refresh and emits one event for it: none if it sent nothing, because of what another process had done. */
export function observeRefresh<T extends RefreshEnd>(
  events: Events,
  { issuer, server }: Grant,
  { isRefused, isForced, isUnused }: { isRefused: boolean; isForced: boolean; isUnused?: boolean },
  work: () => Promise<T>,
): Promise<T> {
  const trigger = isUnused ? "keep_alive" : isRefused ? "unauthorized" : isForced ? "requested" : "expired";
  const about = { trigger, grant: "refresh_token", issuer, server: serverOriginOf(server) } as const;
  return observe(events, "refresh", work, (end): RefreshFields | undefined => {
    if ("error" in end) return { ...describeFailure(end.error), ...about };
    const { ended } = end.result;
    if (ended === undefined) return undefined;
    return { ...(ended === "refreshed" ? { outcome: ended } : describeRejection(ended)), ...about };
  });
}

function describeRejection(verdict: unknown) {
  return { outcome: "rejected", reason: "issuer", code: knownCodeOf(verdict) } as const;
}

function describeFailure(error: unknown): Pick<RefreshFields, "outcome" | "reason" | "code"> {
  if (!isAgentAuthError(error)) return { outcome: "failed", reason: reasonOf(error), code: knownCodeOf(error) };
  // With a status it is the issuer's own `login_required` (OpenID Connect Core section 3.1.2.6).
  const isLogin = error.code === "login_required" && error.status === undefined;
  // The error for the caller is that a login is required; its cause is what the issuer answered.
  if (isLogin && error.cause !== undefined) return describeRejection(error.cause);
  const isLost = isLostAnswer(error) || error.code === "grant_not_saved";
  const reason = isLogin ? "superseded" : reasonOf(error);
  return { outcome: isLost ? "lost" : "failed", reason, code: knownCodeOf(error) };
}
