import type { Readable } from "node:stream";
import { settledWithin } from "../http/deadline.js";
import { MAX_MESSAGE_BYTES } from "./http-exchange.js";
import { RPC_CODES, type RpcResponse, readMessage, rpcErrorResponse } from "./json-rpc.js";
import { McpProxy, type McpProxyOptions } from "./proxy.js";
import { createStdioWriter, readLines, type StdioWriter } from "./stdio.js";
import { ToolPolicy, type ToolPolicyOptions } from "./tool-policy.js";

/** Options of {@link runStdioProxy}. */
export interface StdioProxyOptions
  extends Pick<
    McpProxyOptions,
    "url" | "fetch" | "unattended" | "token" | "extension" | "mask" | "onWarning" | "onLog"
  > {
  /** Which tools the host may list and call. Default: all. */
  tools?: ToolPolicyOptions | undefined;
  /** Milliseconds between requests that keep an idle session alive. Default: none. */
  keepAliveMs?: number | undefined;
  /** Messages of the host, one per line. Its end ends the proxy. */
  input: Readable;
  /** Writes to the host; resolves when the host has read the text, rejects when the pipe is closed. */
  write(text: string): Promise<void>;
  signal: AbortSignal;
  /** The longest message that is forwarded, in bytes. Default {@link MAX_MESSAGE_BYTES}. */
  maxBytes?: number | undefined;
}

/** How long pending requests may take after the host has closed its input. */
const DRAIN_MS = 1000;
/** How long the server may take to end the session. */
const TERMINATE_MS = 2000;

/**
 * Forwards every message between a host on stdio and a server of streamable HTTP, until the host closes its input, the
 * signal fires, or the host's `initialize` fails in a way that a retry does not fix.
 *
 * @throws `AgentAuthError` if no request succeeded, for example without a login; the host gets the error too
 */
export async function runStdioProxy(options: StdioProxyOptions): Promise<void> {
  const { tools, keepAliveMs, input, signal, write, maxBytes = MAX_MESSAGE_BYTES, ...server } = options;
  const { onWarning } = server;
  const ended = new AbortController();
  const stop = () => ended.abort(signal.reason);
  ended.signal.addEventListener("abort", () => input.destroy());
  const host = createStdioWriter(write, () => ended.abort());
  const proxy = new McpProxy({
    ...server,
    host,
    ready: host.ready,
    maxBytes,
    policy: new ToolPolicy(tools),
    onFatalError: () => ended.abort(),
  });
  const pings = keepAliveMs === undefined ? undefined : setInterval(() => void proxy.ping(keepAliveMs), keepAliveMs);
  pings?.unref();
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    await readHost({ input, proxy, host, maxBytes, onWarning, ended: ended.signal });
    await settledWithin(proxy.untilIdle(ended.signal), DRAIN_MS);
    proxy.abortPending();
    // Failure is ignored: the server may have no sessions, or be unreachable.
    await settledWithin(proxy.terminate(), TERMINATE_MS);
  } finally {
    clearInterval(pings);
    signal.removeEventListener("abort", stop);
    proxy.close();
    await host.flushed();
    input.destroy();
  }
  if (proxy.error) throw proxy.error;
}

interface HostInput extends Pick<StdioProxyOptions, "input" | "onWarning"> {
  proxy: Pick<McpProxy, "fromHost" | "untilBelow">;
  host: StdioWriter;
  maxBytes: number;
  ended: AbortSignal;
}

/** Forwards the host's messages until its input ends. */
async function readHost({ input, proxy, host, maxBytes, onWarning, ended }: HostInput): Promise<void> {
  const reject = async (response: RpcResponse) => {
    onWarning(`the host: ${response.error?.message}`);
    host.send(response);
    await host.ready();
  };
  try {
    for await (const line of readLines(input, maxBytes)) {
      if (line === undefined) await reject(tooLong(maxBytes));
      else if (line.trim() !== "") {
        const read = readMessage(line);
        if ("failure" in read) await reject(read.failure);
        else proxy.fromHost(read.message, line.length);
      }
      await proxy.untilBelow(maxBytes, ended);
    }
  } catch (error) {
    // A destroyed input means that the host or the proxy closed the pipe.
    if (!input.destroyed) throw error;
  }
}

function tooLong(maxBytes: number): RpcResponse {
  return rpcErrorResponse(null, { code: RPC_CODES.invalid, message: `the message is longer than ${maxBytes} bytes` });
}
