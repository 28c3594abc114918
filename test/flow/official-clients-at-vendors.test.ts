import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, it } from "vitest";
import { memoryProvider } from "../helpers/official-client.js";
import { startLike } from "../vendors/shape-server.js";

/** The tools that a client lists after a login. */
async function toolsOf(like: string, version: "1.x" | "2.x"): Promise<string[]> {
  await using sandbox = await startLike(like, { accounts: 1, domains: 1, pools: 1, devices: 0 });
  const provider = memoryProvider();
  const connect = async () => {
    const url = new URL(sandbox.mcpUrl);
    if (version === "2.x") {
      const client = new NewClient({ name: "test", version: "1" });
      const transport = new NewTransport(url, { authProvider: provider as never });
      return { transport, client, ready: client.connect(transport) };
    }
    const client = new OldClient({ name: "test", version: "1" });
    const transport = new OldTransport(url, { authProvider: provider });
    return { transport, client, ready: client.connect(transport as Parameters<OldClient["connect"]>[0]) };
  };
  const first = await connect();
  const error = await first.ready.catch((thrown: unknown) => thrown);
  if (provider.authorizationUrl === undefined) throw error;
  const response = await fetch(provider.authorizationUrl, { redirect: "manual" });
  await first.transport.finishAuth(new URL(response.headers.get("location") ?? "").searchParams.get("code") ?? "");
  const { client, ready } = await connect();
  await ready;
  const { tools } = await client.listTools();
  await client.close();
  return tools.map(({ name }) => name);
}

describe("the official clients at a shape", () => {
  it.each([
    ["gitlab", "1.x"],
    ["gitlab", "2.x"],
    ["sentry", "1.x"],
    ["cloudflare-legacy", "1.x"],
    // The record says so: 1.x does not compare issuers, and 2.x refuses.
    ["atlassian", "1.x"],
    ["context7", "1.x"],
  ] as const)("%s: %s lists the tools", async (like, version) => {
    expect(await toolsOf(like, version)).toContain("whoami");
  });

  it.each(["atlassian", "context7", "jumpcloud", "zephyr"])("%s: 2.x refuses the issuer", async (like) => {
    await expect(toolsOf(like, "2.x")).rejects.toThrow(/issuer mismatch/i);
  });

  it.each([
    ["figma", /Forbidden/],
    ["github", /does not support dynamic client registration/],
    ["okta", /E0000005/],
  ] as const)("%s: 1.x cannot register", async (like, words) => {
    await expect(toolsOf(like, "1.x")).rejects.toThrow(words);
  });
});
