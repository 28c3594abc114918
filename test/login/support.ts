import { connect, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { type Loopback, type LoopbackOptions, openLoopback } from "../../src/login/listen.js";

export const STATE = "st_0123456789abcdefghijkl";
export const DENIED = new AgentAuthError("access_denied", "SECRET-DETAIL", { class: "auth" });
export const REFUSED = { ok: false, error: DENIED } as const;

export interface TestLoopback {
  loopback: Loopback;
  port: number;
  controller: AbortController;
}

/** A listener for one test; aborted when it ends, whatever happened. */
export async function openTest(options: Omit<LoopbackOptions, "signal"> = {}): Promise<TestLoopback> {
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const loopback = await openLoopback({ ...options, signal: controller.signal });
  return { loopback, port: Number(new URL(loopback.redirectUri).port), controller };
}

/** The same, waiting for {@link STATE}. */
export async function openWaiting(
  options: Omit<LoopbackOptions, "signal"> = {},
): Promise<TestLoopback & { callback: Promise<URLSearchParams> }> {
  const opened = await openTest(options);
  const callback = opened.loopback.receive(STATE, opened.controller.signal);
  // A test that ends early aborts it.
  callback.catch(() => undefined);
  return { ...opened, callback };
}

/** The right callback, as a browser sends it. */
export function callbackUrl(redirectUri: string, changes: Record<string, string> = {}): string {
  return `${redirectUri}?${new URLSearchParams({ code: "c0de-42", state: STATE, ...changes })}`;
}

/** A socket that never throws; also the bytes it was sent. */
export function openSocket(
  port: number,
  { host = "127.0.0.1", allowHalfOpen = false } = {},
): { socket: Socket; closed: Promise<string> } {
  const socket = connect({ port, host, allowHalfOpen });
  onTestFinished(() => void socket.destroy());
  let received = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    received += text;
  });
  // A reset is one of the ways in which a listener ends a connection.
  socket.on("error", () => undefined);
  return { socket, closed: new Promise((resolve) => socket.once("close", () => resolve(received))) };
}

/** Sends bytes and reads until the other side closes. */
export function raw(port: number, bytes: string, host = "127.0.0.1"): Promise<string> {
  const { socket, closed } = openSocket(port, { host });
  socket.write(bytes, "latin1");
  return closed;
}

/** The status of a raw answer; 0 where there was none. */
export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
}

/** A raw request with the right Host. */
export function request(port: number, target: string, headers: readonly string[] = [], method = "GET"): string {
  return `${[`${method} ${target} HTTP/1.1`, `Host: 127.0.0.1:${port}`, ...headers].join("\r\n")}\r\n\r\n`;
}

/** Holds a port for the length of a test; 0 for one that is free. */
export async function holdPort(port: number, host = "127.0.0.1"): Promise<number> {
  const server = await bindPort(port, host);
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Binds a port; rejects where it is taken. */
export function bindPort(port: number, host = "127.0.0.1"): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host, exclusive: true }, () => resolve(server));
  });
}

/** Whether a port is free. */
export async function isFree(port: number, host?: string): Promise<boolean> {
  try {
    const server = await bindPort(port, host);
    await new Promise((resolve) => server.close(resolve));
    return true;
  } catch {
    return false;
  }
}

/** Sockets and servers that this process holds. */
export function openHandles(): number {
  return process.getActiveResourcesInfo().filter((name) => /^TCP/.test(name)).length;
}

/** The browser that was sent on by an answer and waits for the last page; it is there when this resolves. */
export async function waitForEnd(
  port: number,
  moved: string,
): Promise<{ page: Promise<string>; isAnswered: () => boolean }> {
  const page = raw(port, request(port, /^location: (.*)$/im.exec(moved)?.[1] ?? ""));
  let isAnswered = false;
  void page.then(() => {
    isAnswered = true;
  });
  // Whoever is answered after it shows that its request is there too.
  for (let nth = 0; nth < 5; nth++) await raw(port, request(port, "/nothing"));
  return { page, isAnswered: () => isAnswered };
}
