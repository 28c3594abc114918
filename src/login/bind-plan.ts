import type { RequestListener } from "node:http";
import { AgentAuthError } from "../errors.js";
import { type Listener, type ListenerLimits, listen } from "./listen.js";
import { type RedirectPlan, redirectUri } from "./redirect-address.js";

/**
 * Listens on the first port of a plan that can be bound.
 *
 * @throws AgentAuthError `usage` where none can; it names a required port
 */
export async function listenByPlan(
  plan: RedirectPlan,
  handle: RequestListener,
  limits: ListenerLimits = {},
): Promise<Listener> {
  let failure: unknown;
  for (const port of plan.ports) {
    try {
      return await listen({ port, ipv6: plan.host === "localhost", ...limits }, handle);
    } catch (error) {
      failure = error;
    }
  }
  const requiredPort = plan.ports.at(-1) ?? 0;
  throw requiredPort === 0 ? bindError(failure) : busyError(redirectUri(plan, requiredPort), requiredPort, failure);
}

function busyError(uri: string, port: number, cause: unknown): AgentAuthError {
  const isTaken = (cause as NodeJS.ErrnoException).code === "EADDRINUSE";
  const reason = isTaken ? "another program uses it" : messageOf(cause);
  const message = `port ${port} is needed for the redirect address ${uri}, but ${reason}`;
  const hint = `stop the program that uses port ${port}, or choose another`;
  const remedy = { action: "configure", option: "redirectPort" } as const;
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy, cause });
}

function bindError(cause: unknown): AgentAuthError {
  const message = `nothing can listen on this machine's loopback address: ${messageOf(cause)}`;
  const hint = "log in without a listener: by the flow paste or device";
  const remedy = { action: "configure", option: "flow" } as const;
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy, cause });
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
