import { PassThrough } from "node:stream";
import { onTestFinished } from "vitest";
import type { SendRequest } from "../../src/mcp/http-channel.js";
import { runStdioProxy, type StdioProxyOptions } from "../../src/mcp/proxy.js";
import { until } from "../helpers/server.js";

/** A message that the host has received. */
export interface HostMessage {
  id?: string | number | null;
  method?: string;
  params?: Record<string, unknown>;
  result?: { content?: { text?: string }[]; [member: string]: unknown };
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

/** The params of the host's `initialize`. */
export const HELLO = {
  protocolVersion: "2025-11-25",
  capabilities: { sampling: {} },
  clientInfo: { name: "host", version: "1" },
};

/** A host in this process that is connected to a server through the proxy. */
export function startHost(
  url: string,
  { fetch = globalThis.fetch, ...overrides }: Partial<StdioProxyOptions> & { fetch?: typeof globalThis.fetch } = {},
) {
  const input = new PassThrough();
  const received: HostMessage[] = [];
  const warnings: string[] = [];
  const log: string[] = [];
  const stop = new AbortController();
  const done = runStdioProxy({
    url,
    fetch: fetch as SendRequest,
    input,
    write: async (text) => void received.push(JSON.parse(text) as HostMessage),
    signal: stop.signal,
    mask: (text) => text,
    onWarning: (text) => void warnings.push(text),
    onLog: (text) => void log.push(text),
    ...overrides,
  });
  // Tests that expect an error await `done` themselves.
  done.catch(() => undefined);
  onTestFinished(async () => {
    stop.abort();
    await done.catch(() => undefined);
  });
  const send = (message: object) => void input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const answerTo = async (id: string | number): Promise<HostMessage> => {
    const found = () => received.find((one) => one.id === id && one.method === undefined);
    await until(() => found() !== undefined);
    return found() as HostMessage;
  };
  const ask = (id: string | number, method: string, params: object = {}) => {
    send({ id, method, params });
    return answerTo(id);
  };
  return {
    received,
    warnings,
    log,
    done,
    stop,
    send,
    ask,
    answerTo,
    /** A line as it is. */
    write: (line: string) => void input.write(line),
    end: () => void input.end(),
    call: (id: string | number, name: string, args: object = {}, meta: object = {}) =>
      ask(id, "tools/call", { name, arguments: args, _meta: meta }),
    async begin(): Promise<HostMessage> {
      const answer = await ask("init", "initialize", HELLO);
      send({ method: "notifications/initialized" });
      return answer;
    },
  };
}
