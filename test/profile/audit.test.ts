import { execFileSync } from "node:child_process";
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
    const tool = "a\u001b[31m\u009b1m\u007f~\u202e\uffffb\nc";
    open()({ type: "broker", client: "job", method: "POST", tool, status: 200, durationMs: 1 });
    expect(readFileSync(path, "latin1")).toMatch(/^[\x20-\x7e]+\n$/);
    expect(readFileSync(path, "latin1")).toContain('"tool":"a\\u001b[31m\\u009b1m\\u007f~\\u202e\\uffffb\\nc"');
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

  it("is not moved aside for its first line, whatever its size", () => {
    const { path, open } = opened({ maxBytes: 1 });
    open()(TOKEN);
    expect(readdirSync(join(path, ".."))).toEqual(["audit.log"]);
  });

  it("is moved aside when it is full, and the nine newest older ones stay", () => {
    const { path, open, lines } = opened({ maxBytes: 300 });
    const receive = open();
    for (let n = 0; n < 40; n++) receive(TOKEN);
    const older = readdirSync(join(path, "..")).filter((name) => name !== "audit.log");
    expect(older).toHaveLength(9);
    for (const name of [...older, "audit.log"]) expect(lines(join(path, "..", name)).length).toBeGreaterThan(0);
  });

  it("is moved aside to a name with the time, and of older ones the oldest go, and no other file", () => {
    const { path, open } = opened({ maxBytes: 1 });
    const folder = join(path, "..");
    const olderName = (nth: number) => `audit.log.202001${10 + nth}T000000000Z-0000000${9 - nth}`;
    const others = [
      "audit.log.20200101T000000000Z-0000000",
      "audit.log.20200101T000000000Z-00000000x",
      "audit.log.20200101T00000000Z-00000000",
      "audit.logs.20200101T000000000Z-00000000",
      "other.log.20200101T000000000Z-00000000",
    ];
    const older = Array.from({ length: 9 }, (_, nth) => olderName(nth));
    for (const name of [...older].reverse().concat(others)) writeFileSync(join(folder, name), "{}\n", { mode: 0o600 });
    const receive = open();
    receive(TOKEN);
    expect(readdirSync(folder)).toHaveLength(older.length + others.length + 1);
    receive(TOKEN);
    const left = readdirSync(folder).sort();
    const aside = left.find((name) => !older.includes(name) && !others.includes(name) && name !== "audit.log");
    expect(aside).toMatch(/^audit\.log\.\d{8}T\d{9}Z-[0-9a-f]{8}$/);
    expect(left).toEqual(["audit.log", ...older.slice(1), ...others, aside].sort());
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
    ["can be read by others", (path) => writeFileSync(path, "", { mode: 0o644 }), /^the audit file .* can be read by/],
    [
      "can be written by others",
      (path) => {
        writeFileSync(path, "");
        chmodSync(path, 0o620);
      },
      /can be read by others/,
    ],
    ["is a link", (path) => symlinkSync("/dev/null", path), /^the audit file .* is a symbolic link$/],
    [
      "has another name",
      (path) => {
        writeFileSync(`${path}.other`, "", { mode: 0o600 });
        linkSync(`${path}.other`, path);
      },
      /^the audit file .* has another name too \(a hard link\)$/,
    ],
    ["is a folder", (path) => mkdirSync(path), /^the audit file .* cannot be opened \(EISDIR\)$/],
    ["is a pipe", (path) => execFileSync("mkfifo", ["-m", "600", path]), /^the audit file .* is not an ordinary file$/],
    [
      "is in a folder that others can write into",
      (path) => chmodSync(join(path, ".."), 0o777),
      /can be written by others/,
    ],
  ])("is refused if it %s", (_what, prepare, message) => {
    const { path, open } = opened();
    prepare(path);
    expect(open).toThrow(expect.objectContaining({ code: "store_failed", message: expect.stringMatching(message) }));
    expect(open).toThrow(join(path, ".."));
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
    expect(warnings).toEqual([
      `events cannot be written into ${path}: the audit file ${path} can be read by others (mode 0644, owner: you)`,
    ]);
  });
});
