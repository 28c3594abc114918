import { AgentAuthError, abortedError } from "../errors.js";
import { untilAborted } from "../http/deadline.js";
import type { LoginOutcome } from "../oauth/login.js";
import { CallbackDesk } from "./callback-desk.js";
import { type Listener, listen } from "./listen.js";
import { authority, planRedirect, type RedirectPlan, type RedirectWish, redirectUri } from "./redirect-address.js";

/** Time that the browser gets to fetch its last page. */
const LAST_PAGE_MS = 2_000;

/** How a callback listener is opened. */
export interface LoopbackOptions extends RedirectWish {
  /** Called once when 50 wrong callbacks have come. */
  onProbe?: (() => void) | undefined;
  /** Closes everything at once. */
  signal: AbortSignal;
}

/** A callback listener; bound from the start to the end. */
export interface Loopback {
  /** Where the authorization server sends the browser (RFC 8252 section 7.3). */
  readonly redirectUri: string;
  /** Waits for the callback with this state; any other changes nothing. Rejects when the signal fires. */
  receive(state: string, signal: AbortSignal): Promise<URLSearchParams>;
  /** Tells the browser how it ended, waits at most two seconds until it has read it, and closes everything. */
  close(outcome: LoginOutcome): Promise<void>;
}

/**
 * Opens a callback listener on this machine.
 *
 * @throws AgentAuthError `usage` where the wished port is taken, or where nothing can be bound
 */
export async function openLoopback(options: LoopbackOptions): Promise<Loopback> {
  const { signal } = options;
  const plan = planRedirect(options);
  if (signal.aborted) throw abortedError(signal);
  let desk: CallbackDesk | undefined;
  const listener = await listenAny(plan, options.port !== undefined, (request, response) =>
    // Bound a moment before the port is known, by which the desk tells its own requests.
    desk === undefined ? request.socket.destroy() : desk.handle(request, response),
  );
  const { port } = listener;
  const names = plan.host === "localhost" ? ["localhost", "127.0.0.1", "[::1]"] : [plan.host];
  const opened = new CallbackDesk({
    hosts: new Set(names.map((name) => authority(name, port))),
    path: plan.path,
    onProbe: () => options.onProbe?.(),
    hold: (socket) => listener.hold(socket),
  });
  desk = opened;
  const onAbort = () => void listener.close();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) {
    await listener.close();
    throw abortedError(signal);
  }
  return {
    redirectUri: redirectUri(plan, port),
    receive: (state, stop) => untilAborted(untilAborted(opened.expect(state), signal), stop),
    async close(outcome) {
      await settled(opened.conclude(outcome), signal);
      signal.removeEventListener("abort", onAbort);
      await listener.close();
    },
  };
}

/** Waits for the last page, until time is up or the login is aborted. */
async function settled(page: Promise<void>, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LAST_PAGE_MS);
  });
  await untilAborted(Promise.race([page, timeUp]), signal).catch(() => {});
  clearTimeout(timer);
}

async function listenAny(
  { host, path, ports }: RedirectPlan,
  isWished: boolean,
  handle: Parameters<typeof listen>[1],
): Promise<Listener> {
  let failure: unknown;
  for (const port of ports) {
    try {
      return await listen({ port, ipv6: host === "localhost" }, handle);
    } catch (error) {
      failure = error;
    }
  }
  throw isWished ? busyError(redirectUri({ host, path }, ports[0] ?? 0), ports[0], failure) : bindError(failure);
}

function busyError(uri: string, port: number | undefined, cause: unknown): AgentAuthError {
  const reason =
    (cause as NodeJS.ErrnoException).code === "EADDRINUSE" ? "another program holds it" : messageOf(cause);
  return new AgentAuthError("usage", `port ${port} is needed for the redirect address ${uri}, but ${reason}`, {
    class: "usage",
    hint: `end the program that holds port ${port}, or choose another with --redirect-port`,
    cause,
  });
}

function bindError(cause: unknown): AgentAuthError {
  return new AgentAuthError("usage", `nothing can listen on this machine's loopback address: ${messageOf(cause)}`, {
    class: "usage",
    hint: "sign in without a listener: --flow paste or --flow device",
    cause,
  });
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
