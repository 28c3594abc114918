import { PassThrough } from "node:stream";
import { onTestFinished } from "vitest";
import { runStdioProxy, type StdioProxyOptions } from "../../src/mcp/stdio-proxy.js";
import { until } from "../helpers/server.js";

/** A message as the host read it. */
export interface Heard {
  id?: string | number | null;
  method?: string;
  params?: Record<string, unknown>;
  result?: { content?: { text?: string }[]; [member: string]: unknown };
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

/** How a host begins. */
export const HELLO = {
  protocolVersion: "2025-11-25",
  capabilities: { sampling: {} },
  clientInfo: { name: "host", version: "1" },
};

/** A host in this process that speaks with a server over the bridge. */
export function startHost(url: string, over: Partial<StdioProxyOptions> = {}) {
  const input = new PassThrough();
  const heard: Heard[] = [];
  const trouble: string[] = [];
  const steps: string[] = [];
  const stop = new AbortController();
  const done = runStdioProxy({
    url,
    fetch: globalThis.fetch,
    input,
    write: async (text) => void heard.push(JSON.parse(text) as Heard),
    signal: stop.signal,
    mask: (text) => text,
    onTrouble: (text) => void trouble.push(text),
    onStep: (text) => void steps.push(text),
    ...over,
  });
  // What it ends with is for the test that asks.
  done.catch(() => undefined);
  onTestFinished(async () => {
    stop.abort();
    await done.catch(() => undefined);
  });
  const say = (message: object) => void input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const answerTo = async (id: string | number): Promise<Heard> => {
    const found = () => heard.find((one) => one.id === id && one.method === undefined);
    await until(() => found() !== undefined);
    return found() as Heard;
  };
  const ask = (id: string | number, method: string, params: object = {}) => {
    say({ id, method, params });
    return answerTo(id);
  };
  return {
    heard,
    trouble,
    steps,
    done,
    stop,
    say,
    ask,
    answerTo,
    /** A line as it is. */
    write: (line: string) => void input.write(line),
    end: () => void input.end(),
    call: (id: string | number, name: string, args: object = {}, meta: object = {}) =>
      ask(id, "tools/call", { name, arguments: args, _meta: meta }),
    async begin(): Promise<Heard> {
      const answer = await ask("init", "initialize", HELLO);
      say({ method: "notifications/initialized" });
      return answer;
    },
  };
}
