import { listenByPlan } from "./bind-plan.js";
import { planRedirect, type RedirectWish, redirectUri } from "./redirect-address.js";

/**
 * A redirect address at which nothing answers, for a callback that the person brings.
 *
 * The address must look like that of a listener, because that is what loopback clients register. Its port is bound for
 * a moment and let go: so no other program holds it when the login begins, and the browser stops with the whole address
 * in its address bar instead of handing the code to whatever listens there. A wished port is taken as it is: with a
 * browser elsewhere it does not matter what listens here.
 *
 * @throws AgentAuthError `usage` where nothing can be bound
 */
export async function reserveRedirect(wish: RedirectWish): Promise<string> {
  const plan = planRedirect(wish);
  if (wish.port !== undefined) return redirectUri(plan, wish.port);
  const listener = await listenByPlan(plan, (request) => request.socket.destroy());
  await listener.close();
  return redirectUri(plan, listener.port);
}
