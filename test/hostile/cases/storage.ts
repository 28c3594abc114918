import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
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
import { grantFile, grantFiles } from "../../helpers/grant-files.js";
import { type HostileCase, unless, WHOLE_LOGIN } from "../case.js";
import { PLANTED } from "../checks.js";
import { filesBelow } from "../kit/canaries.js";
import type { Kit } from "../kit/kit.js";

/** The file of the only stored login. */
const fileOf = ({ home }: Kit) => grantFile(home);

const OTHER_UID = 12_345;
const impossible = process.getuid?.() === 0 ? undefined : "only root can give a file away";

/** A damaged stored login, and a request for its token. */
function damaged(
  id: string,
  input: string,
  spoil: (path: string, kit: Kit) => unknown,
  says: readonly (string | RegExp)[],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input,
    result: "refused and unchanged; the hint is the command that repairs it",
    outcome: "store",
    code: "store_failed",
    command: "token",
    async arrange(kit) {
      await kit.saveLogin();
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
/** A path outside the store for copies of stored files. */
const planted = ({ folder }: Kit) => {
  mkdirSync(join(folder, PLANTED), { recursive: true, mode: 0o700 });
  return join(folder, PLANTED, "moved");
};

const permissions: HostileCase[] = [
  damaged("K2a", "a login that others can read", (path) => chmodSync(path, 0o644), [
    "can be read by others",
    "chmod 600",
  ]),
  damaged("K2b", "a login that the group can read", (path) => chmodSync(path, 0o640), ["chmod 600"]),
  damaged("K2c", "a folder that others can enter", (path) => chmodSync(join(path, ".."), 0o755), ["chmod 700"]),
  damaged("K2d", "a home folder that others can write to", (_, kit) => chmodSync(kit.home, 0o777), [
    "can be written by others",
    "chmod go-w",
  ]),
  damaged(
    "K2e",
    "a login that belongs to another user",
    (path) => chownSync(path, OTHER_UID, OTHER_UID),
    ["belongs to another user", "chown"],
    { impossible },
  ),
  damaged(
    "K2f",
    "a folder that belongs to another user",
    (path) => chownSync(join(path, ".."), OTHER_UID, OTHER_UID),
    ["belongs to another user", "chown"],
    { impossible },
  ),
];

const kinds: HostileCase[] = [
  damaged(
    "K3a",
    "a symbolic link in place of a login",
    (path, kit) => {
      renameSync(path, planted(kit));
      symlinkSync(planted(kit), path);
    },
    ["is a symbolic link"],
  ),
  damaged("K3b", "a second name for a login (a hard link)", (path, kit) => linkSync(path, planted(kit)), [
    "has another name too (a hard link)",
  ]),
  damaged(
    "K3c",
    "a FIFO in place of a login",
    (path) => {
      rmSync(path);
      execFileSync("mkfifo", ["-m", "600", path]);
    },
    ["is not an ordinary file"],
  ),
  damaged(
    "K3d",
    "a folder in place of a login",
    (path) => {
      rmSync(path);
      mkdirSync(path, { mode: 0o700 });
    },
    ["is not an ordinary file"],
  ),
  damaged(
    "K3e",
    "a symbolic link in place of the folder of logins",
    (path, kit) => {
      renameSync(join(path, ".."), planted(kit));
      symlinkSync(planted(kit), join(path, ".."));
    },
    ["is a symbolic link"],
  ),
  damaged(
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
  damaged("K4a", "a login that is empty", content(""), ["held nothing", ".json.broken", "agentauth login"], {
    result: "kept beside it, and counts as missing",
    outcome: "auth",
    code: "login_required",
    store: "any",
    cliOnly: true,
    requests: ["mcp POST /mcp?"],
  }),
  damaged(
    "K4b",
    "a truncated login",
    (path) => writeFileSync(path, readFileSync(path, "utf8").slice(0, 90), { mode: 0o600 }),
    ["cannot be used", "mv"],
    {
      check: (_, run) => unless({ "the content is not shown": !/refreshToken|canary/.test(run?.stderr ?? "") }),
    },
  ),
  damaged(
    "K4c",
    "a login of random bytes",
    content(Buffer.from(Array.from({ length: 500 }, (_, nth) => (nth * 7919) % 256))),
    ["cannot be used", "mv"],
  ),
  damaged(
    "K4d",
    "a login of a newer version",
    rewrite((stored) => ({ ...stored, schema: 2 })),
    ['its schema is "2", and this version reads 1', "mv"],
  ),
  damaged(
    "K4e",
    "a login with another structure",
    rewrite(() => ({ schema: 1, kind: "grant", tokens: [] })),
    ["cannot be used", "mv"],
  ),
  damaged(
    "K4f",
    "a login with a duplicate member",
    (path) =>
      writeFileSync(path, readFileSync(path, "utf8").replace("{", '{"server":"https://evil.example",'), {
        mode: 0o600,
      }),
    ["appears twice", "mv"],
  ),
  damaged(
    "K4g",
    "a login with the content of another login",
    rewrite((stored) => ({ ...stored, server: "https://evil.example/mcp" })),
    ["its name is that of another login", "mv"],
  ),
  damaged("K4h", "a login of 20 MB", content(`{"schema":1,"a":"${"a".repeat(20e6)}"}`), ["larger than 1048576 bytes"]),
  damaged(
    "K4i",
    "a login nested 100,000 deep",
    content(`{"schema":1,"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`),
    ["nested deeper than 32"],
  ),
  damaged("K4j", "a damaged login, and a new login that would replace it", content("{"), ["cannot be used", "mv"], {
    command: "login",
    cliOnly: true,
  }),
  {
    ...damaged("K4k", "a damaged login beside a valid one", () => undefined, []),
    result: "the valid one is used",
    outcome: "ok",
    code: undefined,
    prints: ["access-token"],
    async arrange(kit) {
      await kit.saveLogin({ server: "http://127.0.0.1:1/other" });
      content("{")(fileOf(kit));
      await kit.saveLogin();
    },
    store: "same",
  },
  damaged(
    "K7",
    "a login with members that this version does not know",
    rewrite((stored) => ({ ...stored, ofTomorrow: { a: 1 } })),
    [],
    {
      result: "kept after a refresh",
      outcome: "ok",
      code: undefined,
      flags: ["--force-refresh"],
      prints: ["access-token"],
      store: "any",
      requests: ["as POST /pool/token"],
      check: (kit) => unless({ "the members are stored": readFileSync(fileOf(kit), "utf8").includes("ofTomorrow") }),
    },
  ),
];

const FIRST = { outcome: "ok", requests: WHOLE_LOGIN, cliOnly: true } as const;
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
    input: "a first login with umask 000",
    result: "folders have mode 0700, files 0600",
    ...FIRST,
    run: { wrapper: ["sh", "-c", 'umask 000; exec "$0" "$@"'] },
    check: (kit) => unless({ "other users cannot read or enter": modesIn(kit).every(Boolean) }),
  },
  {
    id: "K6",
    input: "a full disk, and an expired token",
    result: "an error before the token request; the refresh token stays valid",
    outcome: "store",
    command: "token",
    arrange: (kit) => kit.saveLogin({}, { expiresAt: Date.now() - 1000 }),
    run: { wrapper: ["sh", "-c", 'ulimit -f 0; exec "$0" "$@"'] },
    requests: [],
    says: ["settings"],
  },
  {
    id: "K9a",
    input: "HOME and AGENTAUTH_HOME unset",
    result: "the home folder of the user database, or an error that names AGENTAUTH_HOME",
    outcome: "auth",
    command: "token",
    environment: { HOME: "/nonexistent", AGENTAUTH_HOME: undefined, XDG_CONFIG_HOME: undefined },
    // Whether the server requires a login.
    requests: ["mcp POST /mcp?"],
  },
  {
    id: "K9b",
    input: "AGENTAUTH_HOME in a folder that is not writable",
    result: "an error before a registration, which names the path and the variable",
    outcome: "store",
    environment: { AGENTAUTH_HOME: "/proc/agentauth" },
    says: ["/proc/agentauth", "AGENTAUTH_HOME"],
    check: ({ as }) => unless({ "no client is registered": as.to("/pool/register").length === 0 }),
  },
  {
    id: "K9c",
    input: "AGENTAUTH_HOME that is a file",
    result: "an error that names it",
    outcome: "store",
    command: "token",
    arrange: ({ home }) => writeFileSync(home, "x"),
    says: ["settings"],
    requests: [],
    check: ({ home }) => unless({ "the file is unchanged": readFileSync(home, "utf8") === "x" }),
    store: "any",
  },
  {
    id: "K10",
    input: "AGENTAUTH_STORE=keyring without a keychain",
    result: "an error; no file is used instead",
    outcome: "store",
    environment: { AGENTAUTH_STORE: "keyring", DBUS_SESSION_BUS_ADDRESS: "unix:path=/nonexistent" },
    seconds: 25,
    check: ({ home }) =>
      unless({
        "nothing is stored": grantFiles(home).length === 0,
      }),
    store: "logins",
  },
  {
    id: "K14",
    input: "a logout, with files of interrupted saves beside the login",
    result: "no token is left in the folder",
    outcome: "ok",
    async arrange(kit) {
      await kit.saveLogin();
      const path = fileOf(kit);
      const temporary = join(path, "..", "next.0123456789ab.tmp");
      copyFileSync(path, temporary);
      chmodSync(temporary, 0o600);
    },
    command: ({ mcp }) => ["logout", mcp.url],
    requests: ["as POST /pool/revoke"],
    check: async ({ home, canaries }) =>
      unless({
        "no login is stored": (await fileStore(home).list()).length === 0,
        "no token is left": filesBelow(home).every(
          ({ content: text }) => !text.includes(canaries.get("refresh-token")),
        ),
      }),
  },
];

/** The folder of the logins, changed by other users or programs. */
export const storage: readonly HostileCase[] = [...permissions, ...kinds, ...contents, ...places];
