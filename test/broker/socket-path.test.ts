import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, statSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createBroker } from "../../src/broker/broker.js";
import { listen } from "../../src/broker/listen.js";
import type { BrokerClient } from "../../src/broker/policy.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { memoryStore } from "../../src/store/memory.js";
import { temporaryFolder } from "../helpers/folder.js";
import { ON_LINUX, ON_WINDOWS } from "../helpers/systems.js";

const IS_ROOT = process.getuid?.() === 0;
const GROUP = IS_ROOT ? 1234 : (process.getgid?.() ?? 0);

async function start(clients: Record<string, BrokerClient>, sockets: Record<string, number> = {}): Promise<void> {
  const policy = { grants: { mcp: { server: "http://127.0.0.1:9/" } }, clients };
  const { close } = await listen(createBroker(new AgentClient({ store: memoryStore() }), policy), { sockets });
  onTestFinished(() => close(0));
}

const startIn = (folder: string) => start({ job: { listen: `unix:${join(folder, "a.sock")}`, socketGroup: GROUP } });
const accessOf = (path: string) => {
  const { mode, gid, uid } = statSync(path);
  return { mode: (mode & 0o7777).toString(8), gid, uid };
};
const made = (mode: number, group = GROUP) => {
  const folder = join(temporaryFolder(), "run");
  mkdirSync(folder);
  chownSync(folder, -1, group);
  chmodSync(folder, mode);
  return folder;
};

describe.skipIf(ON_WINDOWS)("the folder of a socket for a group", () => {
  it("is made for the group, and nothing above it", async () => {
    const above = join(temporaryFolder(), "above");
    await startIn(join(above, "run"));
    expect(accessOf(join(above, "run"))).toMatchObject({ mode: "710", gid: GROUP });
    expect(accessOf(join(above, "run", "a.sock"))).toMatchObject({ mode: "660", gid: GROUP });
    expect(accessOf(above).mode).toBe("700");
  });

  it.each([0o710, 0o2710])("may be there already, as the group needs it: %o", async (mode) => {
    const folder = made(mode);
    await startIn(folder);
    expect(accessOf(folder)).toMatchObject({ mode: mode.toString(8), gid: GROUP });
  });

  it("has sockets of clients without a group, in whatever order they are", async () => {
    for (const names of [
      ["own", "shared"],
      ["shared", "own"],
    ]) {
      const folder = join(temporaryFolder(), "run");
      const clients = names.map((name): [string, BrokerClient] => [
        name,
        { listen: `unix:${join(folder, name)}`, ...(name === "shared" && { socketGroup: GROUP }) },
      ]);
      await start(Object.fromEntries(clients));
      expect(accessOf(folder).mode).toBe("710");
      expect([accessOf(join(folder, "own")).mode, accessOf(join(folder, "shared")).mode]).toEqual(["600", "660"]);
    }
  });

  it.each([
    ["is private", () => made(0o700), /^chgrp \d+ \S+\/run && chmod 710 \S+\/run$/],
    ["lets others in", () => made(0o711), /^chgrp \d+ \S+\/run && chmod 710 \S+\/run$/],
    ["is shared", () => made(0o1777), /^use a folder of its own: mkdir -m 710 (\S+\/run\/agentauth) && chgrp \d+ \1$/],
    ["can be written by its group", () => made(0o770), /^use a folder of its own: mkdir /],
    ...(IS_ROOT ? ([["is of another group", () => made(0o710, 1235), /^chgrp 1234 \S+ && chmod 710 /]] as const) : []),
  ] as const)("that is there and %s stays as it is", async (_what, make, hint) => {
    const folder = make();
    const before = accessOf(folder);
    await expect(startIn(folder)).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringContaining(folder),
      hint: expect.stringMatching(hint),
    });
    expect(accessOf(folder)).toEqual(before);
    expect(existsSync(join(folder, "a.sock"))).toBe(false);
  });

  it("is not what a link leads to", async () => {
    const folder = made(0o710);
    const link = `${folder}-link`;
    symlinkSync(folder, link);
    await expect(startIn(link)).rejects.toMatchObject({
      code: "store_failed",
      hint: expect.stringContaining("leads to"),
    });
    symlinkSync(join(folder, "missing"), `${folder}-dangling`);
    await expect(startIn(`${folder}-dangling`)).rejects.toMatchObject({ code: "store_failed" });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(existsSync(join(folder, "missing"))).toBe(false);
  });

  it.skipIf(!IS_ROOT)("is not one of another user, nor in one that others can change", async () => {
    const folder = made(0o710);
    chownSync(folder, 1234, GROUP);
    await expect(startIn(folder)).rejects.toMatchObject({ code: "store_failed" });
    expect(accessOf(folder)).toEqual({ mode: "710", gid: GROUP, uid: 1234 });
    for (const parent of [folder, made(0o777)]) {
      await expect(startIn(join(parent, "run"))).rejects.toMatchObject({ code: "store_failed" });
      expect(existsSync(join(parent, "run"))).toBe(false);
    }
    // Only its owner can rename a folder there.
    await startIn(join(made(0o1777), "run"));
  });
});

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
