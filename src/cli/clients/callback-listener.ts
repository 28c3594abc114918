/** The process that waits for the callback of a login between its two steps, as its starter sees it. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { parse } from "node:path";
import { createInterface } from "node:readline";
import { followSignal } from "../../http/deadline.js";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import type { RedirectOptions } from "../../login/redirect-address.js";
import { livenessOf } from "../../store/leases/lock-owner.js";
import { RECEIVE_CALLBACK } from "../flags/agent.js";
import type { CommandContext } from "../runtime/context.js";
import { listenerOf } from "./started-logins.js";

/** Time for the process to start and to respond. */
const RESPONSE_MS = 10_000;

export interface CallbackRequest {
  id: string;
  state: string;
  /** Milliseconds until it gives up. */
  ttlMs: number;
}

/** A process that has bound the redirect address of a login. */
export interface CallbackListener {
  readonly redirectUri: string;
  /** Makes it wait for the callback, and leaves it to itself. @returns whether it does */
  waitInBackground(request: CallbackRequest): Promise<boolean>;
  /** Ends it. */
  stop(): void;
}

/**
 * Starts a process that binds a redirect address. It gets no environment of ours and no secret but `state`, by its
 * standard input.
 *
 * @returns undefined where it cannot be started or cannot bind: the second step then listens itself
 */
export async function startListener(
  redirect: RedirectOptions,
  context: CommandContext,
): Promise<CallbackListener | undefined> {
  const { program } = context;
  if (program === undefined) return undefined;
  const { SystemRoot, windir } = context.io.env;
  const env = { AGENTAUTH_HOME: context.home(), ...(SystemRoot && { SystemRoot }), ...(windir && { windir }) };
  const [node, script] = program;
  const child = spawn(node, [script, RECEIVE_CALLBACK], {
    detached: true,
    windowsHide: true,
    cwd: parse(process.execPath).root,
    env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const { stdin, stdout } = child;
  const failed = once(child, "error").catch(() => {});
  stdin.on("error", () => {});
  const lines = createInterface({ input: stdout });
  const send = async (message: object): Promise<Record<string, unknown>> => {
    const limit = followSignal(context.signal, RESPONSE_MS);
    const response = once(lines, "line", { signal: limit.signal });
    stdin.write(`${JSON.stringify(message)}\n`);
    const ended = once(lines, "close").then(() => []);
    const [line] = (await Promise.race([response, ended, failed.then(() => [])]).catch(() => [])) as [string?];
    limit.release();
    const value = line === undefined ? undefined : parseStrictJson(line);
    return isJsonObject(value) ? value : {};
  };
  const stop = () => {
    stdin.destroy();
    stdout.destroy();
    child.unref();
  };
  const { redirectUri } = await send(redirect);
  if (typeof redirectUri !== "string") {
    stop();
    return undefined;
  }
  return {
    redirectUri,
    async waitInBackground(request) {
      const { isHeld } = await send(request);
      stop();
      return isHeld === true;
    },
    stop,
  };
}

/** Whether the process that was to wait for the callback of a login still does. */
export async function isListening(id: string, listensAt: string, context: CommandContext): Promise<boolean> {
  const listener = listenerOf(id, context);
  if (listener === undefined || listener.until < context.now() || livenessOf(listener) === "dead") return false;
  // Of a process in another namespace nothing else is known; and one that is stuck does not count.
  const { hostname, port } = new URL(listensAt);
  const socket = connect({ host: hostname === "localhost" ? "127.0.0.1" : hostname, port: Number(port || 80) });
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}
