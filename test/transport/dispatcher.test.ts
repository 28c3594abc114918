import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ManagementClient } from "../../src/api/client.js";
import type { AgentAuthError } from "../../src/errors.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { memoryStore } from "../../src/store/memory.js";
import { createFetch, type DispatcherOptions } from "../../src/transport/dispatcher.js";
import { nodeNetwork } from "../../src/transport/network.js";
import { CLOSED_PORT } from "../helpers/port.js";
import { startSocketServer, startTlsServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

const PEM = readFileSync(new URL("../fixtures/self-signed.pem", import.meta.url), "utf8");
const TIMEOUT_MS = 300;

/** What the library says of a server, where it asks for a list, and where it asks who gives tokens. */
async function failures(origin: string, options: DispatcherOptions = {}) {
  const settings = { timeoutMs: TIMEOUT_MS, maxRetries: 0 };
  const service = new ManagementClient({
    baseUrl: origin,
    token: "tok_0123456789",
    fetch: createFetch(options, undefined),
    ...settings,
  });
  const agent = new AgentClient({ store: memoryStore(), network: nodeNetwork(options), ...settings });
  const listed = (await rejection(service.pools.list({ domain_id: "d" }).toArray())) as AgentAuthError;
  const { error } = await agent.discover(`${origin}/mcp`);
  return [listed, error] as const;
}

const CLOSED = `http://127.0.0.1:${CLOSED_PORT}`;

describe("a failure on the way is distinguished, for lists and for tokens alike", () => {
  it.each<[string, string, () => Promise<[string, DispatcherOptions?]>, RegExp]>([
    ["a name that does not exist", "dns_failed", async () => ["https://no-such-host.invalid"], /could not be resolved/],
    ["a closed port", "connection_refused", async () => [CLOSED], /the connection was refused/],
    [
      "a connection that is cut",
      "connection_reset",
      async () => [(await startSocketServer((socket) => socket.resetAndDestroy())).origin],
      /the connection broke/,
    ],
    [
      "an answer that is cut",
      "connection_reset",
      async () => {
        const cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
        return [(await startSocketServer((socket) => socket.end(cut))).origin];
      },
      /the connection broke/,
    ],
    [
      "a server that says nothing",
      "timeout",
      async () => [(await startSocketServer(() => undefined)).origin],
      /no (?:complete )?response in 0\.3 s/,
    ],
    [
      "a certificate that is not trusted",
      "tls_failed",
      async () => [(await startTlsServer(PEM, (response) => response.end())).origin],
      /TLS failed \(DEPTH_ZERO_SELF_SIGNED_CERT: /,
    ],
    [
      "a proxy that is not there",
      "proxy_failed",
      async () => ["https://service.test", { proxies: { https: CLOSED } }],
      /^service\.test: the proxy 127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)/,
    ],
  ])("%s is %s", async (_what, code, arrange, words) => {
    const [origin, options] = await arrange();
    for (const error of await failures(origin, options)) {
      expect(error).toMatchObject({ code, class: "unavailable", message: expect.stringMatching(words) });
    }
  });
});
