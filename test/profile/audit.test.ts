import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openAudit } from "../../src/profile/audit.js";
import { temporaryFolder } from "../helpers/folder.js";
import { ON_LINUX, ON_WINDOWS } from "../helpers/systems.js";

const TOKEN = { type: "token", source: "stored", issuer: "https://as.example", server: "https://mcp.example" } as const;
const READ = { type: "store", operation: "read", durationMs: 1 } as const;

function opened({ path = join(temporaryFolder(), "audit.log"), maxBytes = 1e6 } = {}) {
  const warnings: string[] = [];
  const open = () =>
    openAudit({ value: `file:${path}`, source: "AGENTAUTH_AUDIT" }, (text) => warnings.push(text), maxBytes);
  const lines = (file = path) =>
    readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
  return { path, open, lines, warnings };
}

describe("the audit file", () => {
  it("has a line for each event, with its time and its process, for this user alone", () => {
    const { path, open, lines } = opened();
    const receive = open();
    receive(TOKEN);
    receive(TOKEN);
    const line = { time: expect.stringMatching(/^\d{4}-.*Z$/), pid: process.pid, ...TOKEN };
    expect(lines()).toEqual([line, line]);
    if (!ON_WINDOWS) expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("leaves out requests, and what was done in the store without a failure", () => {
    const { open, lines } = opened();
    const receive = open();
    receive({ type: "request", method: "GET", url: "https://mcp.example/users/alice", query: "" });
    receive({ ...READ, outcome: "ok" });
    receive({ ...READ, outcome: "failed", code: "store_failed" });
    expect(lines()).toMatchObject([{ type: "store", outcome: "failed" }]);
  });

  it("has nothing that a terminal acts on", () => {
    const { path, open, lines } = opened();
    const tool = "a\u001b[31m\u009b1m\u202eb\nc";
    open()({ type: "broker", client: "job", method: "POST", tool, status: 200, durationMs: 1 });
    expect(readFileSync(path, "latin1")).toMatch(/^[\x20-\x7e]+\n$/);
    expect(lines()).toMatchObject([{ tool }]);
  });

  it("begins a new line after one whose process was killed in the middle of it", () => {
    const { path, open } = opened();
    writeFileSync(path, '{"time":"20', { mode: 0o600 });
    open()(TOKEN);
    const [part, line = ""] = readFileSync(path, "utf8").split("\n");
    expect(part).toBe('{"time":"20');
    expect(JSON.parse(line)).toMatchObject(TOKEN);
  });

  it("is moved aside when it is full, and the nine newest older ones stay", () => {
    const { path, open, lines } = opened({ maxBytes: 300 });
    const receive = open();
    for (let n = 0; n < 40; n++) receive(TOKEN);
    const older = readdirSync(join(path, "..")).filter((name) => name !== "audit.log");
    expect(older).toHaveLength(9);
    for (const name of [...older, "audit.log"]) expect(lines(join(path, "..", name)).length).toBeGreaterThan(0);
  });

  it("takes lines until they have its size, and not a byte more", () => {
    const { path, open } = opened();
    open()(TOKEN);
    const { size } = statSync(path);
    const full = opened({ maxBytes: 2 * size });
    const receive = full.open();
    for (let n = 0; n < 2; n++) receive(TOKEN);
    expect(readdirSync(join(full.path, ".."))).toEqual(["audit.log"]);
    receive(TOKEN);
    expect(readdirSync(join(full.path, ".."))).toHaveLength(2);
  });

  it.skipIf(!ON_LINUX)("is closed after each line, also where it was moved aside", () => {
    const { path, open } = opened({ maxBytes: 300 });
    const receive = open();
    for (let n = 0; n < 10; n++) receive(TOKEN);
    // The descriptor that lists the others is gone by then.
    const targets = readdirSync("/proc/self/fd").flatMap((fd) => {
      const link = `/proc/self/fd/${fd}`;
      return existsSync(link) ? [readlinkSync(link)] : [];
    });
    expect(targets.filter((target) => target.startsWith(join(path, "..")))).toEqual([]);
  });

  it("loses no line when several receivers move it aside", () => {
    const { path, open, lines } = opened({ maxBytes: 1000 });
    const receivers = [open(), open(), open()];
    for (let n = 0; n < 10; n++) for (const receive of receivers) receive(TOKEN);
    const names = readdirSync(join(path, ".."));
    expect(names.length).toBeGreaterThan(2);
    expect(names.flatMap((name) => lines(join(path, "..", name)))).toHaveLength(30);
  });

  it.skipIf(ON_WINDOWS).each<[what: string, prepare: (path: string) => void, message: RegExp]>([
    ["can be read by others", (path) => writeFileSync(path, "", { mode: 0o644 }), /can be read by others/],
    [
      "can be written by others",
      (path) => {
        writeFileSync(path, "");
        chmodSync(path, 0o620);
      },
      /can be read by others/,
    ],
    ["is a link", (path) => symlinkSync("/dev/null", path), /is a symbolic link/],
    [
      "has another name",
      (path) => {
        writeFileSync(`${path}.other`, "", { mode: 0o600 });
        linkSync(`${path}.other`, path);
      },
      /has another name too/,
    ],
    ["is a folder", (path) => mkdirSync(path), /cannot be opened|not an ordinary file/],
    [
      "is in a folder that others can write into",
      (path) => chmodSync(join(path, ".."), 0o777),
      /can be written by others/,
    ],
  ])("is refused if it %s", (_what, prepare, message) => {
    const { path, open } = opened();
    prepare(path);
    expect(open).toThrow(message);
  });

  it.each(["audit.log", "file:", "https://audit.example"])("is refused as %s, with the rule", (value) => {
    expect(() => openAudit({ value, source: "AGENTAUTH_AUDIT" }, () => {})).toThrow(
      /AGENTAUTH_AUDIT .* must be file:PATH/,
    );
  });

  it.skipIf(ON_WINDOWS)("that cannot be written any more is one warning, and no failure", () => {
    const { path, open, warnings } = opened();
    const receive = open();
    chmodSync(path, 0o644);
    receive(TOKEN);
    receive(TOKEN);
    expect(warnings).toEqual([expect.stringContaining("events cannot be written into")]);
  });
});
