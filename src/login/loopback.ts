import { abortedError } from "../errors.js";
import { untilAborted } from "../http/deadline.js";
import { CallbackHandler, type CallbackHandlerOptions } from "./callback-handler.js";
import { type ListenerLimits, listenByPlan } from "./listen.js";
import type { ShownOutcome } from "./pages.js";
import { authorityOf, planRedirect, type RedirectOptions, redirectUri } from "./redirect-address.js";

/** Time for the browser to fetch its last page. */
const LAST_PAGE_MS = 2_000;

/** How a callback listener is opened. */
export interface LoopbackOptions
  extends RedirectOptions,
    ListenerLimits,
    Partial<Pick<CallbackHandlerOptions, "onOtherPath" | "onProbe" | "onStatelessError">> {
  /** Closes everything at once. */
  signal: AbortSignal;
}

/** A callback listener; bound until it is closed. */
export interface Loopback {
  /** Where the authorization server sends the browser (RFC 8252 section 7.3). */
  readonly redirectUri: string;
  /** The address of this machine where the callback must come in; another one, where a proxy is in front of it. */
  readonly listensAt: string;
  /**
   * A short address that leads to the login page until the callback is there, under the rules of `ShortLink`.
   *
   * @param onWithdrawn called once when it stops working, since something on this machine searched for it
   * @returns undefined where it has stopped working
   */
  shortLink(url: string, onWithdrawn: () => void): string | undefined;
  /** Waits for the callback with this state; any other changes nothing. Rejects when the signal fires. */
  receive(state: string, signal: AbortSignal): Promise<URLSearchParams>;
  /** Redirects the browser of a callback to another request, if it requests its page; undefined where there is no browser. */
  redirectAgain(url: string): Promise<boolean> | undefined;
  /** Sends the outcome to the browser, waits for that at most two seconds, and closes everything. */
  close(outcome: ShownOutcome): Promise<void>;
}

/**
 * Opens a callback listener on this machine.
 *
 * @throws AgentAuthError `usage` where the required port is taken, or where nothing can be bound
 */
export async function openLoopback(options: LoopbackOptions): Promise<Loopback> {
  const { signal, requestTimeoutMs } = options;
  const plan = planRedirect(options);
  if (signal.aborted) throw abortedError(signal);
  // Filled once the port is known; until then every request is refused.
  const hosts = new Set<string>();
  const handler = new CallbackHandler({
    hosts,
    path: plan.path,
    publicPath: plan.uri === undefined ? plan.path : new URL(plan.uri).pathname,
    onProbe: () => options.onProbe?.(),
    onOtherPath: (path) => options.onOtherPath?.(path),
    onStatelessError: (error) => options.onStatelessError?.(error),
    keepAlive: (socket) => listener.keepAlive(socket),
  });
  const listener = await listenByPlan(plan, (request, response) => handler.handle(request, response), {
    requestTimeoutMs,
  });
  const names = plan.host === "localhost" ? ["localhost", "127.0.0.1", "[::1]"] : [plan.host];
  for (const name of names) hosts.add(authorityOf(name, listener.port));
  // A proxy may leave the browser's Host as it is.
  if (plan.uri !== undefined) hosts.add(new URL(plan.uri).host);
  const onAbort = () => void listener.close();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) {
    await listener.close();
    throw abortedError(signal);
  }
  const listensAt = redirectUri(plan, listener.port);
  return {
    redirectUri: plan.uri ?? listensAt,
    listensAt,
    shortLink(url, onWithdrawn) {
      const path = handler.shortPathTo(url, onWithdrawn);
      return path === undefined ? undefined : redirectUri({ host: plan.host, path }, listener.port);
    },
    receive: (state, stop) => untilAborted(untilAborted(handler.expect(state), signal), stop),
    redirectAgain: (url) => handler.redirectAgain(url),
    async close(outcome) {
      await lastPage(handler.finish(outcome), signal);
      signal.removeEventListener("abort", onAbort);
      await listener.close();
    },
  };
}

/** Waits for the last page, until time is up or the login is aborted. */
async function lastPage(page: Promise<void>, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LAST_PAGE_MS);
  });
  await untilAborted(Promise.race([page, timeUp]), signal).catch(() => {});
  clearTimeout(timer);
}
