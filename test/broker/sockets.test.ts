import { chmodSync, chownSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createBroker } from "../../src/broker/broker.js";
import { listen } from "../../src/broker/listen.js";
import type { BrokerClient } from "../../src/broker/policy.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { memoryStore } from "../../src/store/memory.js";
import { temporaryFolder } from "../helpers/folder.js";
import { ON_LINUX } from "../helpers/systems.js";

const IS_ROOT = process.getuid?.() === 0;

async function start(clients: Record<string, BrokerClient>, sockets: Record<string, number> = {}): Promise<void> {
  const policy = { grants: { mcp: { server: "http://127.0.0.1:9/" } }, clients };
  const { close } = await listen(createBroker(new AgentClient({ store: memoryStore() }), policy), { sockets });
  onTestFinished(() => close(0));
}

/** The file descriptor of a socket that another program has opened. */
async function opened(address: { path: string } | { port: number; host: string }): Promise<number> {
  const server: Server & { _handle?: { fd: number } } = createServer();
  await new Promise<void>((resolve) => server.listen(address, resolve));
  onTestFinished(() => void server.close());
  return server._handle?.fd ?? -1;
}

describe.skipIf(!ON_LINUX)("a socket that the parent passes", () => {
  const startWith = (fd: number) => start({ job: { listen: "systemd:agent" } }, { agent: fd });

  it("is named by the parent", async () => {
    await expect(start({ job: { listen: "systemd:agent" } })).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("LISTEN_FDS"),
    });
    await expect(start({ job: { listen: "systemd:constructor" } })).rejects.toMatchObject({ code: "usage" });
  });

  it("is refused where others can use it, and where it has no path", async () => {
    const path = join(temporaryFolder(), "a.sock");
    const fd = await opened({ path });
    chmodSync(path, 0o666);
    await expect(startWith(fd)).rejects.toMatchObject({
      code: "store_failed",
      hint: expect.stringContaining("SocketMode="),
    });
    if (IS_ROOT) {
      chmodSync(path, 0o600);
      chownSync(path, 1234, -1);
      await expect(startWith(fd)).rejects.toMatchObject({ hint: expect.stringContaining("SocketUser=") });
    }
    for (const address of [{ path: `\0agent-${process.pid}` }, { port: 0, host: "127.0.0.1" }])
      await expect(opened(address).then(startWith)).rejects.toMatchObject({ code: "usage" });
  });
});
