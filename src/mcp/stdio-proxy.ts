import type { Readable } from "node:stream";
import { backpressureFetch, createHttpSide, MAX_MESSAGE_BYTES } from "./http-transport.js";
import { failure, RPC_CODES, type RpcResponse, readMessage } from "./json-rpc.js";
import { McpProxy, type McpProxyOptions, settledWithin } from "./proxy.js";
import { createStdioWriter, readLines, type StdioWriter } from "./stdio.js";

/** What joins a host to a server. */
export interface StdioProxyOptions extends Pick<McpProxyOptions, "url" | "mask" | "onTrouble" | "onStep"> {
  /** Sends each request; it brings the token. */
  fetch: typeof globalThis.fetch;
  /** What the host says: a message a line. Its end is the host's farewell. */
  input: Readable;
  /** Says something to the host; resolves when it has been taken, fails when it never will be. */
  write(text: string): Promise<void>;
  /** Ends the bridge. */
  signal: AbortSignal;
  /** The longest message that is passed on, in bytes. Default {@link MAX_MESSAGE_BYTES}. */
  maxBytes?: number | undefined;
}

/** How long requests may still take whose host has said that nothing more will come. */
const DRAIN_MS = 1000;
/** How long the server has for the end of the session. */
const FAREWELL_MS = 2000;

/**
 * Passes messages between a host on a pipe and a server of streamable HTTP, whatever they are about, until the host ends
 * it, the signal fires, or the host's `initialize` is refused for a reason that asking again does not mend.
 *
 * @throws `AgentAuthError` where nothing could be done for the host, such as a missing login; the host has the error too
 */
export async function runStdioProxy(options: StdioProxyOptions): Promise<void> {
  const { url, fetch, input, signal, mask, onTrouble, onStep, maxBytes = MAX_MESSAGE_BYTES } = options;
  const over = new AbortController();
  const stop = () => over.abort(signal.reason);
  over.signal.addEventListener("abort", () => input.destroy(), { once: true });
  const host = createStdioWriter(options.write, () => over.abort());
  const http = createHttpSide(
    url,
    backpressureFetch(fetch, () => host.ready(), maxBytes),
  );
  const relay = new McpProxy({ url, host, http, mask, onTrouble, onStep, onRefused: () => over.abort() });
  await http.start();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    await listen({ input, relay, host, maxBytes, onTrouble, over: over.signal });
    await settledWithin(relay.idle(over.signal), DRAIN_MS);
    relay.giveUp();
    // A server without sessions, or one that is gone, needs no such request.
    await settledWithin(http.terminateSession(), FAREWELL_MS);
  } finally {
    signal.removeEventListener("abort", stop);
    await http.close();
    await host.flushed();
    input.destroy();
  }
  if (relay.refusal) throw relay.refusal;
}

interface Listening extends Pick<StdioProxyOptions, "input" | "onTrouble"> {
  relay: McpProxy;
  host: StdioWriter;
  maxBytes: number;
  over: AbortSignal;
}

/** Takes what the host says, until it says no more. */
async function listen({ input, relay, host, maxBytes, onTrouble, over }: Listening): Promise<void> {
  const refuse = async (answer: RpcResponse) => {
    onTrouble(`the host: ${answer.error?.message}`);
    host.send(answer);
    await host.ready();
  };
  try {
    for await (const line of readLines(input, maxBytes)) {
      if (line?.trim() === "") continue;
      const read = line === undefined ? { failure: tooLong(maxBytes) } : readMessage(line);
      if ("failure" in read) await refuse(read.failure);
      else relay.fromHost(read.message, line?.length ?? 0);
      await relay.room(maxBytes, over);
    }
  } catch (error) {
    // A pipe that breaks is a host that is gone, and one that we hung up ends so too.
    if (!input.destroyed) throw error;
  }
}

function tooLong(maxBytes: number): RpcResponse {
  return failure(null, { code: RPC_CODES.invalid, message: `the message is longer than ${maxBytes} bytes` });
}
