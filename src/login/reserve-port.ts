import { listenByPlan } from "./listen.js";
import { planRedirect, type RedirectOptions, redirectUri } from "./redirect-address.js";

/**
 * A redirect address at which nothing listens, for a callback that the user pastes.
 *
 * The address must look like that of a listener, because that is what loopback clients register. Its port is bound for
 * a moment and released: so no other program holds it when the login begins, and the browser stops with the whole address
 * in its address bar instead of sending the code to another program. A given port is used without a check: with a
 * browser on another machine it does not matter what listens here.
 *
 * @throws AgentAuthError `usage` where nothing can be bound
 */
export async function reserveRedirect(options: RedirectOptions): Promise<string> {
  const plan = planRedirect(options);
  if (options.port !== undefined) return redirectUri(plan, options.port);
  const ports = plan.ports.flatMap((port) => (port === 0 ? [...unassignedPorts(), port] : [port]));
  const listener = await listenByPlan({ ...plan, ports }, (request) => request.socket.destroy());
  await listener.close();
  return redirectUri(plan, listener.port);
}

/**
 * Some ports that systems do not assign to connections (Linux assigns from 32768, the others from 49152): the login may be
 * finished minutes later, and any request of this machine can have an assigned one by then.
 */
const unassignedPorts = () => Array.from({ length: 5 }, () => 15_000 + Math.floor(15_000 * Math.random()));
