import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileStore } from "../../../src/store/file/file.js";
import { EXCHANGED, type HostileCase, unless } from "../case.js";
import { PLANTED } from "../judge.js";
import { filesBelow } from "../kit/canaries.js";
import type { Kit } from "../kit/kit.js";

/** The file of the one login that is kept. */
function fileOf(kit: Kit): string {
  const grants = join(kit.home, "grants");
  const [name = ""] = readdirSync(grants);
  return join(grants, name);
}

const STRANGER = 12_345;
const impossible = process.getuid?.() === 0 ? undefined : "only root can give a file away";

/** A stored login that something was done to, and a token that is wanted all the same. */
function kept(
  id: string,
  came: string,
  spoil: (path: string, kit: Kit) => unknown,
  says: readonly (string | RegExp)[],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    came,
    done: "refused and unchanged; the hint is the command that repairs it",
    outcome: "store",
    code: "store_failed",
    command: "token",
    async arrange(kit) {
      await kit.keep();
      await spoil(fileOf(kit), kit);
    },
    says,
    requests: [],
    ...over,
  };
}

const rewrite = (change: (stored: Record<string, unknown>) => unknown) => (path: string) =>
  writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, "utf8")))), { mode: 0o600 });
const content = (text: string | Buffer) => (path: string) => writeFileSync(path, text, { mode: 0o600 });
/** A place for copies of what is stored, where it may be. */
const planted = ({ folder }: Kit) => {
  mkdirSync(join(folder, PLANTED), { recursive: true, mode: 0o700 });
  return join(folder, PLANTED, "moved");
};

const permissions: HostileCase[] = [
  kept("K2a", "a login that others can read", (path) => chmodSync(path, 0o644), ["can be read by others", "chmod 600"]),
  kept("K2b", "a login that the group can read", (path) => chmodSync(path, 0o640), ["chmod 600"]),
  kept("K2c", "a folder that others can enter", (path) => chmodSync(join(path, ".."), 0o755), ["chmod 700"]),
  kept("K2d", "a home folder that others can write to", (_, kit) => chmodSync(kit.home, 0o777), [
    "can be written by others",
    "chmod go-w",
  ]),
  kept(
    "K2e",
    "a login that belongs to another user",
    (path) => chownSync(path, STRANGER, STRANGER),
    ["belongs to another user", "chown"],
    { impossible },
  ),
  kept(
    "K2f",
    "a folder that belongs to another user",
    (path) => chownSync(join(path, ".."), STRANGER, STRANGER),
    ["belongs to another user", "chown"],
    { impossible },
  ),
];

const kinds: HostileCase[] = [
  kept(
    "K3a",
    "a symbolic link in place of a login",
    (path, kit) => {
      renameSync(path, planted(kit));
      symlinkSync(planted(kit), path);
    },
    ["is a symbolic link"],
  ),
  kept("K3b", "a second name for a login (a hard link)", (path, kit) => linkSync(path, planted(kit)), [
    "has another name too (a hard link)",
  ]),
  kept(
    "K3c",
    "a FIFO in place of a login",
    (path) => {
      rmSync(path);
      execFileSync("mkfifo", ["-m", "600", path]);
    },
    ["is not an ordinary file"],
  ),
  kept(
    "K3d",
    "a folder in place of a login",
    (path) => {
      rmSync(path);
      mkdirSync(path, { mode: 0o700 });
    },
    ["is not an ordinary file"],
  ),
  kept(
    "K3e",
    "a symbolic link in place of the folder of logins",
    (path, kit) => {
      renameSync(join(path, ".."), planted(kit));
      symlinkSync(planted(kit), join(path, ".."));
    },
    ["is a symbolic link"],
  ),
  kept(
    "K3f",
    "a file in place of the folder of logins",
    (path) => {
      rmSync(join(path, ".."), { recursive: true });
      writeFileSync(join(path, ".."), "");
    },
    ["is not a folder"],
  ),
];

const contents: HostileCase[] = [
  kept("K4a", "a login that is empty", content(""), ["cannot be used", "move it away: mv"]),
  kept(
    "K4b",
    "a truncated login",
    (path) => writeFileSync(path, readFileSync(path, "utf8").slice(0, 90), { mode: 0o600 }),
    ["cannot be used", "mv"],
    {
      check: (_, run) => unless({ "nothing of it is shown": !/refreshToken|canary/.test(run?.stderr ?? "") }),
    },
  ),
  kept(
    "K4c",
    "a login of random bytes",
    content(Buffer.from(Array.from({ length: 500 }, (_, nth) => (nth * 7919) % 256))),
    ["cannot be used", "mv"],
  ),
  kept(
    "K4d",
    "a login of a newer version",
    rewrite((stored) => ({ ...stored, schema: 2 })),
    ['its schema is "2", and this version reads 1', "mv"],
  ),
  kept(
    "K4e",
    "a login with another structure",
    rewrite(() => ({ schema: 1, kind: "grant", tokens: [] })),
    ["cannot be used", "mv"],
  ),
  kept(
    "K4f",
    "a login with a duplicate member",
    (path) =>
      writeFileSync(path, readFileSync(path, "utf8").replace("{", '{"server":"https://evil.example",'), {
        mode: 0o600,
      }),
    ["comes twice", "mv"],
  ),
  kept(
    "K4g",
    "a login with the content of another login",
    rewrite((stored) => ({ ...stored, server: "https://evil.example/mcp" })),
    ["its name is that of another login", "mv"],
  ),
  kept("K4h", "a login of 20 MB", content(`{"schema":1,"a":"${"a".repeat(20e6)}"}`), ["larger than 1048576 bytes"]),
  kept("K4i", "a login nested 100,000 deep", content(`{"schema":1,"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`), [
    "nested deeper than 32",
  ]),
  kept("K4j", "a damaged login, and a new login that would replace it", content("{"), ["cannot be used", "mv"], {
    command: "login",
    cliOnly: true,
  }),
  {
    ...kept("K4k", "a damaged login beside a valid one", () => undefined, []),
    done: "the valid one is used",
    outcome: "ok",
    code: undefined,
    prints: ["access-token"],
    async arrange(kit) {
      await kit.keep({ server: "http://127.0.0.1:1/other" });
      content("{")(fileOf(kit));
      await kit.keep();
    },
    store: "same",
  },
  kept(
    "K7",
    "a login with members that this version does not know",
    rewrite((stored) => ({ ...stored, ofTomorrow: { a: 1 } })),
    [],
    {
      done: "kept after a refresh",
      outcome: "ok",
      code: undefined,
      flags: ["--force-refresh"],
      prints: ["access-token"],
      store: "any",
      requests: ["as POST /pool/token"],
      check: (kit) => unless({ "they are kept": readFileSync(fileOf(kit), "utf8").includes("ofTomorrow") }),
    },
  ),
];

const FIRST = { outcome: "ok", requests: EXCHANGED, cliOnly: true } as const;
const modesIn = ({ home }: Kit) => [
  (lstatSync(home).mode & 0o777) === 0o700,
  ...readdirSync(home, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => (statSync(join(home, name)).mode & 0o777) === 0o700),
  ...filesBelow(home).map(({ mode }) => (mode & 0o077) === 0),
];

const places: HostileCase[] = [
  {
    id: "K1",
    came: "a first login with umask 000",
    done: "folders have mode 0700, files 0600",
    ...FIRST,
    run: { wrapper: ["sh", "-c", 'umask 000; exec "$0" "$@"'] },
    check: (kit) => unless({ "nobody else can read or enter": modesIn(kit).every(Boolean) }),
  },
  {
    id: "K6",
    came: "a full disk, and an expired token",
    done: "an error before the token request; the refresh token stays valid",
    outcome: "store",
    command: "token",
    arrange: (kit) => kit.keep({}, { expiresAt: Date.now() - 1000 }),
    run: { wrapper: ["sh", "-c", 'ulimit -f 0; exec "$0" "$@"'] },
    requests: [],
    says: ["settings"],
  },
  {
    id: "K9a",
    came: "HOME and AGENTAUTH_HOME unset",
    done: "the home folder of the user database, or an error that names AGENTAUTH_HOME",
    outcome: "auth",
    command: "token",
    environment: { HOME: "/nonexistent", AGENTAUTH_HOME: undefined, XDG_CONFIG_HOME: undefined },
    requests: [],
  },
  {
    id: "K9b",
    came: "AGENTAUTH_HOME in a folder that is not writable",
    done: "an error before a registration, which names the path and the variable",
    outcome: "store",
    environment: { AGENTAUTH_HOME: "/proc/agentauth" },
    says: ["/proc/agentauth", "AGENTAUTH_HOME"],
    check: ({ as }) => unless({ "nobody is registered": as.to("/pool/register").length === 0 }),
  },
  {
    id: "K9c",
    came: "AGENTAUTH_HOME that is a file",
    done: "an error that names it",
    outcome: "store",
    command: "token",
    arrange: ({ home }) => writeFileSync(home, "x"),
    says: ["settings"],
    requests: [],
    check: ({ home }) => unless({ "it is as it was": readFileSync(home, "utf8") === "x" }),
    store: "any",
  },
  {
    id: "K10",
    came: "AGENTAUTH_STORE=keyring without a keychain",
    done: "an error; no file is used instead",
    outcome: "store",
    environment: { AGENTAUTH_STORE: "keyring", DBUS_SESSION_BUS_ADDRESS: "unix:path=/nonexistent" },
    seconds: 25,
    check: ({ home }) =>
      unless({
        "nothing is kept": !existsSync(join(home, "grants")) || readdirSync(join(home, "grants")).length === 0,
      }),
    store: "logins",
  },
  {
    id: "K14",
    came: "a logout, with files of interrupted saves beside the login",
    done: "no token is left in the folder",
    outcome: "ok",
    async arrange(kit) {
      await kit.keep();
      const path = fileOf(kit);
      copyFileSync(path, `${path}.0123456789ab.tmp`);
      chmodSync(`${path}.0123456789ab.tmp`, 0o600);
    },
    command: ({ mcp }) => ["logout", mcp.url],
    requests: ["as POST /pool/revoke"],
    check: async ({ home, canaries }) =>
      unless({
        "no login is kept": (await fileStore(home).list()).length === 0,
        "no token is left": filesBelow(home).every(
          ({ content: text }) => !text.includes(canaries.get("refresh-token")),
        ),
      }),
  },
];

/** The folder in which logins are kept, and what others may have done to it. */
export const storage: readonly HostileCase[] = [...permissions, ...kinds, ...contents, ...places];
