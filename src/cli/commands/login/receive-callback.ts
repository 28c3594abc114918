/** The process that waits for the callback of a login between its two steps. */

import { createInterface } from "node:readline";
import { followSignal } from "../../../http/deadline.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import { type Loopback, openLoopback } from "../../../login/listen.js";
import type { RedirectOptions } from "../../../login/redirect-address.js";
import { thisProcess } from "../../../store/leases/lock-owner.js";
import type { CallbackRequest } from "../../clients/started-logins.js";
import { checkLoginId, isPending, removeListener, storeCallback, storeListener } from "../../clients/started-logins.js";
import type { CommandContext } from "../../runtime/context.js";

/** How often the process checks whether the login was finished without it. */
const CHECK_MS = 250;

/**
 * Binds the redirect address that the first line of stdin describes and prints it; then waits for the callback that the
 * second line describes, stores its code in a private file, and ends. It also ends when its time is up, when the login is
 * finished or removed, and where the program that started it leaves without a second line.
 */
export async function runReceiveCallback(_options: object, context: CommandContext): Promise<undefined> {
  const { io, signal } = context;
  const lines = createInterface({ input: io.stdin.stream })[Symbol.asyncIterator]();
  const next = async (): Promise<Record<string, unknown> | undefined> => {
    const { value, done } = await lines.next();
    const message: unknown = done ? undefined : parseStrictJson(value);
    return isJsonObject(message) ? message : undefined;
  };
  const respond = (message: object) => io.stdout.write(`${JSON.stringify(message)}\n`);
  const redirect = await next();
  if (redirect === undefined) return;
  const loopback = await openLoopback({ ...(redirect as RedirectOptions), signal });
  await respond({ redirectUri: loopback.redirectUri });
  const request = (await next()) as CallbackRequest | undefined;
  if (request === undefined) {
    await loopback.close("received");
    return;
  }
  checkLoginId(request.id);
  storeListener(request.id, { ...thisProcess(), until: context.now() + request.ttlMs }, context);
  await respond({ isHeld: true });
  await lines.return?.();
  io.stdin.stream.destroy();
  await receive(loopback, request, context);
}

async function receive(loopback: Loopback, request: CallbackRequest, context: CommandContext): Promise<void> {
  const { id, state, ttlMs } = request;
  const deadline = followSignal(context.signal, ttlMs, () => new Error("time is up"));
  const check = setInterval(() => {
    if (!isPending(id, context)) deadline.abort(new Error("the login was finished or removed"));
  }, CHECK_MS);
  try {
    const parameters = await loopback.receive(state, deadline.signal).catch(() => undefined);
    if (parameters !== undefined && isPending(id, context)) storeCallback(id, parameters, context);
  } finally {
    clearInterval(check);
    deadline.release();
    removeListener(id, context);
    await loopback.close("received");
  }
}
