import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { join, parse } from "node:path";
import { describe, expect, it } from "vitest";
import {
  finishCommand,
  isListening,
  isPending,
  LIFE_MS,
  pendingLogins,
  readListener,
  readLogin,
  removeListener,
  startListener,
  storeCallback,
  storeInterval,
  storeListener,
  storeLogin,
  takeCallback,
} from "../../../src/cli/clients/started-logins.js";
import { encodeLogin, type StoredLogin } from "../../../src/oauth/login/login-codec.js";
import { Secret } from "../../../src/redact.js";
import { thisProcess } from "../../../src/store/leases/lock-owner.js";
import { temporaryFolder } from "../../helpers/cli.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { startRun } from "../run-support.js";
import { DEVICE_LOGIN } from "./device-login.js";
import { listening, portOf } from "./proxied-service.js";

const ID = "abcdefghijkl";

function arrange(...names: string[]) {
  const home = temporaryFolder();
  const folder = join(home, "logins");
  mkdirSync(folder, { mode: 0o700 });
  for (const name of names) writeFileSync(join(folder, name), "{}", { mode: 0o600 });
  return { folder, files: { home: () => home, now: () => Date.now() }, names: () => readdirSync(folder).sort() };
}

/** A login whose user opens a browser on this machine. */
const BROWSER_LOGIN = {
  ...DEVICE_LOGIN,
  flow: undefined,
  device: undefined,
  pending: {
    authorizationUrl: "https://as.example/authorize?state=state-1",
    redirectUri: "http://127.0.0.1:49152/callback",
    state: "state-1",
    codeVerifier: new Secret("verifier"),
  },
} as unknown as StoredLogin;

describe("the files of started logins", () => {
  it("have no callback of a login that was removed while it was stored", () => {
    const removed = arrange();
    storeCallback(ID, new URLSearchParams("code=c&state=s"), removed.files);
    expect(removed.names()).toEqual([]);
    const pending = arrange(`${ID}.json`);
    storeCallback(ID, new URLSearchParams("code=c&state=s"), pending.files);
    expect(pending.names()).toEqual([`${ID}.callback`, `${ID}.json`]);
  });

  it("lose callbacks and listeners without a login when the next one starts, and nothing else", async () => {
    const kept = ["bbbbbbbbbbbb.callback", "bbbbbbbbbbbb.json", "bbbbbbbbbbbb.listener", "notes.txt"];
    const { files, names } = arrange(`${ID}.callback`, "aaaaaaaaaaaa.listener", ...kept);
    await storeLogin("cccccccccccc", { profile: "default" } as StoredLogin, files);
    expect(names()).toEqual([...kept, "cccccccccccc.json"].sort());
  });

  it("are in one folder, whatever an id names", () => {
    const { files } = arrange();
    for (const id of ["../../secret", "", "a/bcdefghijk", `${ID}x`]) {
      expect(() => readLogin(id, "https://mcp.example/mcp", files)).toThrow("is not a login id");
    }
  });

  it("hold what decides a login of its callback, and nothing else", () => {
    const { files, folder } = arrange(`${ID}.json`);
    storeCallback(ID, new URLSearchParams("code=c&state=s&iss=i&session=private&id_token=private"), files);
    expect(readFileSync(join(folder, `${ID}.callback`), "utf8")).toBe("code=c&state=s&iss=i\n");
    storeCallback(ID, new URLSearchParams("error=e&error_description=d&error_uri=u"), files);
    expect([...(takeCallback(ID, files) ?? [])]).toEqual([
      ["error", "e"],
      ["error_description", "d"],
    ]);
  });

  it("give a callback to one taker, once, and leave nothing of it", () => {
    const { files, names } = arrange(`${ID}.json`);
    storeCallback(ID, new URLSearchParams("code=c&state=s"), files);
    expect(takeCallback(ID, files)?.get("code")).toBe("c");
    expect(takeCallback(ID, files)).toBeUndefined();
    expect(names()).toEqual([`${ID}.json`]);
  });

  it("give no callback that another name leads to", () => {
    const { files, folder, names } = arrange(`${ID}.json`, "foreign");
    linkSync(join(folder, "foreign"), join(folder, `${ID}.callback`));
    expect(() => takeCallback(ID, files)).toThrow("another name");
    expect(names()).toEqual([`${ID}.callback`, `${ID}.json`, "foreign"]);
  });

  it("are waited for only as long as both the login and its listener are there", () => {
    const { files } = arrange(`${ID}.json`, `${ID}.listener`);
    expect(isPending(ID, files)).toBe(true);
    removeListener(ID, files);
    expect(isPending(ID, files)).toBe(false);
    const { files: removed } = arrange(`${ID}.listener`);
    expect(isPending(ID, removed)).toBe(false);
  });

  it("name the listener by the id of its process, and none without", () => {
    const { files, folder } = arrange(`${ID}.json`, `${ID}.listener`);
    const listener = { ...thisProcess(), until: 5 };
    for (const text of ["", "{}", '{"pid":"1"}', '{"pid":1.5}', "[1]", "null", "{"]) {
      writeFileSync(join(folder, `${ID}.listener`), text, { mode: 0o600 });
      expect(readListener(ID, files)).toBeUndefined();
    }
    storeListener(ID, listener, files);
    expect(readListener(ID, files)).toEqual(listener);
    expect(readFileSync(join(folder, `${ID}.listener`), "utf8")).toBe(`${JSON.stringify(listener)}\n`);
    removeListener(ID, files);
    expect(readListener(ID, files)).toBeUndefined();
  });

  it("are listed as they expire, each by its own life, and not those that cannot be read", async () => {
    const { files, folder } = arrange("zzzzzzzzzzzz.json", `x${ID}.json`, `${ID}.json.bak`, "short.json");
    const now = 1_000_000_000_000;
    const at = { ...files, now: () => now };
    const lives = { bbbbbbbbbbbb: 3000, aaaaaaaaaaaa: undefined, cccccccccccc: 1000, dddddddddddd: 2000 };
    for (const [id, ttlMs] of Object.entries(lives)) {
      await storeLogin(id, { ...DEVICE_LOGIN, ttlMs }, at);
      utimesSync(join(folder, `${id}.json`), now / 1000, now / 1000);
    }
    const listed = pendingLogins(at).map(({ id, startedAt, expiresAt }) => [id, startedAt, expiresAt - now]);
    expect(listed).toEqual([
      ["cccccccccccc", now, 1000],
      ["dddddddddddd", now, 2000],
      ["bbbbbbbbbbbb", now, 3000],
      ["aaaaaaaaaaaa", now, LIFE_MS],
    ]);
    expect(pendingLogins({ ...files, now: () => now + 2000 }).map(({ id }) => id)).toEqual([
      ...["dddddddddddd", "bbbbbbbbbbbb", "aaaaaaaaaaaa"],
    ]);
  });

  it("are none where there is no folder, or none that can be read", () => {
    const { files, folder } = arrange();
    const none = { ...files, home: () => join(folder, "missing") };
    writeFileSync(join(folder, "logins"), "a file");
    expect([pendingLogins(none), pendingLogins({ ...files, home: () => folder })]).toEqual([[], []]);
  });

  it("lose an expired login with all that belongs to it when the next one starts", async () => {
    const { files, folder, names } = arrange(`${ID}.callback`, `${ID}.listener`);
    await storeLogin(ID, { ...DEVICE_LOGIN, ttlMs: 1000 }, files);
    await storeLogin("bbbbbbbbbbbb", { ...DEVICE_LOGIN, ttlMs: 3000 }, files);
    for (const id of [ID, "bbbbbbbbbbbb"]) utimesSync(join(folder, `${id}.json`), 1000, 1000);
    await storeLogin("cccccccccccc", DEVICE_LOGIN, { ...files, now: () => 1_001_000 });
    expect(names()).toContain(`${ID}.json`);
    await storeLogin("cccccccccccc", DEVICE_LOGIN, { ...files, now: () => 1_001_001 });
    expect(names()).toEqual(["bbbbbbbbbbbb.json", "cccccccccccc.json"]);
  });

  it("keep the interval of a login in a browser, and of one that is gone", async () => {
    const { files, names, folder } = arrange();
    storeInterval(ID, 10, files);
    expect(names()).toEqual([]);
    writeFileSync(join(folder, `${ID}.json`), encodeLogin(BROWSER_LOGIN), { mode: 0o600 });
    storeInterval(ID, 10, files);
    expect(readFileSync(join(folder, `${ID}.json`), "utf8")).toBe(encodeLogin(BROWSER_LOGIN));
  });

  it("say what helps where a login is not stored, or cannot be used", () => {
    const { files, folder } = arrange();
    const url = "https://mcp.example/mcp?a=b c";
    const failure = (id: string) => {
      try {
        return readLogin(id, url, files);
      } catch (error) {
        return error;
      }
    };
    expect(failure("a/b")).toMatchObject({
      ...{ code: "usage", message: '--wait "a/b" is not a login id' },
      hint: "start a login, which prints its id: agentauth login <mcp_url> --no-wait --json",
    });
    expect(failure(ID)).toMatchObject({
      ...{ code: "usage", message: `no started login "${ID}" is stored` },
      hint: `agentauth login '${url}' --no-wait starts one`,
    });
    const path = join(folder, `${ID}.json`);
    writeFileSync(path, "{}", { mode: 0o600 });
    expect(failure(ID)).toMatchObject({
      ...{ code: "store_failed", class: "store", hint: "start the login again" },
      message: expect.stringMatching(new RegExp(`^the file ${path} cannot be used: \\S`)),
      remedy: { action: "login", server: url },
      cause: expect.any(Error),
    });
  });

  it("expire at the same time, however often the interval of a device login grows", async () => {
    const { files, folder } = arrange();
    await storeLogin(ID, DEVICE_LOGIN, files);
    const path = join(folder, `${ID}.json`);
    const begun = new Date(Math.floor(Date.now() / 1000 - 60) * 1000);
    utimesSync(path, begun, begun);
    storeInterval(ID, 10, files);
    expect(statSync(path).mtimeMs).toBe(begun.getTime());
    const [pending] = pendingLogins(files);
    expect(pending).toMatchObject({ login: { device: { intervalSeconds: 10 } }, expiresAt: begun.getTime() + LIFE_MS });
  });

  it.each([
    ["verificationUri", "https://as.example/device"],
    ["tokenEndpoint", DEVICE_LOGIN.issuer.tokenEndpoint],
  ])("cannot be used where %s is no address", (member, value) => {
    const { files, folder } = arrange();
    const text = encodeLogin(DEVICE_LOGIN).replace(`"${member}": "${value}"`, `"${member}": "nowhere"`);
    writeFileSync(join(folder, `${ID}.json`), text, { mode: 0o600 });
    expect(() => readLogin(ID, "https://mcp.example/mcp", files)).toThrow(`${member} is not an address`);
  });

  it("are not listed after they have expired", () => {
    const { files, folder } = arrange();
    writeFileSync(join(folder, `${ID}.json`), encodeLogin(DEVICE_LOGIN), { mode: 0o600 });
    expect(pendingLogins(files)).toHaveLength(1);
    expect(pendingLogins({ ...files, now: () => Date.now() + LIFE_MS + 1 })).toEqual([]);
  });
});

it.each<[string, Partial<StoredLogin>, string]>([
  ["its server alone", {}, `https://mcp.example/mcp --wait ${ID}`],
  [
    "its profile and account, quoted for a shell",
    { profile: "a; touch x #", account: "it's me" },
    `https://mcp.example/mcp --wait ${ID} --profile 'a; touch x #' --account-hint 'it'\\''s me'`,
  ],
  [
    "the identity provider in place of both",
    { account: "grant:idp", profile: "work" },
    `--idp ${DEVICE_LOGIN.issuer.issuer} --wait ${ID} --profile work`,
  ],
])("the command that finishes a login names %s", (_what, more, words) => {
  expect(finishCommand(ID, { ...DEVICE_LOGIN, ...more } as StoredLogin)).toBe(`agentauth login ${words}`);
});

const ORDER = { id: ID, state: "state-1", ttlMs: 1000 };

describe("the process that waits for a callback", () => {
  async function waits(record: object | undefined, redirect?: string) {
    const { context } = startRun({}, {}, { now: () => 1000 });
    mkdirSync(join(context.home(), "logins"), { mode: 0o700 });
    const server = await listening(createServer());
    if (record !== undefined) storeListener(ID, { ...thisProcess(), until: 1000, ...record }, context);
    const result = await isListening(ID, redirect ?? `http://127.0.0.1:${portOf(server)}/callback`, context);
    server.close();
    return result;
  }

  it("still does where it lives, has time, and its address answers", async () => {
    expect(await waits({})).toBe(true);
    // Of a process in another namespace only the address is known.
    expect(await waits({ space: "another", pid: 1 })).toBe(true);
  });

  it("answers for the name localhost at the address that it has bound", async () => {
    const server = await listening(createServer());
    expect(await waits({}, `http://localhost:${portOf(server)}/callback`)).toBe(true);
    server.close();
  });

  it.each<[string, object | undefined, string?]>([
    ["is not stored", undefined],
    ["has no more time", { until: 999 }],
    ["has ended", { started: "0" }],
    ["has an address that nothing answers at", {}, "http://127.0.0.1:1/callback"],
  ])("does not where it %s", async (_what, record, redirect) => {
    expect(await waits(record, redirect)).toBe(false);
  });
});

describe.skipIf(ON_WINDOWS)("a process that binds the redirect address", () => {
  /** Starts a shell script in its place, which finds its folder in `$folder`. */
  async function start(script: string, env: Record<string, string> = {}) {
    const { context } = startRun({ env });
    const folder = context.home();
    const path = join(folder, "listener");
    writeFileSync(path, `folder=${folder}\n${script}`);
    chmodSync(path, 0o700);
    const program = ["/bin/sh", path] as const;
    const listener = await startListener(
      { redirectHost: undefined, redirectPort: 1, preferred: undefined },
      { ...context, program },
    );
    return { listener, context, read: (name: string) => readFileSync(join(folder, name), "utf8") };
  }
  const BOUND = `read -r line; printf '%s\\n' "$line" > $folder/first; printf '{"redirectUri":"http://127.0.0.1:1/c"}\\n'\n`;
  const HELD = `read -r line; printf '%s\\n' "$line" > $folder/second; printf '{"isHeld":true}\\n'\n`;

  it("gets its orders by standard input, and nothing of our environment but the folder", async () => {
    const script = `printf '%s' "$*" > $folder/words; pwd > $folder/cwd; env > $folder/env\n${BOUND}${HELD}`;
    const more = {
      SystemRoot: "C:\\Windows",
      windir: "C:\\windir",
      AGENTAUTH_API_TOKEN: "secret",
      PATH: "/bin:/usr/bin",
    };
    const { listener, context, read } = await start(script, more);
    expect(listener?.redirectUri).toBe("http://127.0.0.1:1/c");
    expect(await listener?.waitInBackground(ORDER)).toBe(true);
    expect([read("words"), read("cwd")]).toEqual(["receive-callback", `${parse(process.execPath).root}\n`]);
    expect([JSON.parse(read("first")), JSON.parse(read("second"))]).toEqual([{ redirectPort: 1 }, ORDER]);
    const env = Object.fromEntries(
      read("env")
        .trim()
        .split("\n")
        .map((line) => line.split("=")),
    );
    const { AGENTAUTH_HOME, SystemRoot, windir, AGENTAUTH_API_TOKEN } = env;
    expect({ AGENTAUTH_HOME, SystemRoot, windir, AGENTAUTH_API_TOKEN }).toEqual({
      ...{ AGENTAUTH_HOME: context.home(), SystemRoot: "C:\\Windows", windir: "C:\\windir" },
    });
  });

  it("leaves out the variables of Windows elsewhere", async () => {
    const { read } = await start(`env > $folder/env\n${BOUND}`);
    expect(read("env")).not.toMatch(/SystemRoot|windir/);
  });

  it.each([
    ["ends", `${BOUND}`],
    ["says no", `${BOUND}read -r line; printf '{"isHeld":"yes"}\\n'`],
    ["answers with no object", `${BOUND}read -r line; printf '[true]\\n'`],
  ])("does not wait where it %s after that", async (_what, script) => {
    const { listener } = await start(script);
    expect(await listener?.waitInBackground(ORDER)).toBe(false);
  });

  it.each([
    ["ends at once", "exit 1"],
    ["binds nothing", `read -r line; printf '{"redirectUri":1}\\n'`],
    ["answers with no object", "read -r line; printf 'null\\n'"],
  ])("is none where it %s", async (_what, script) => {
    expect((await start(script)).listener).toBeUndefined();
  });

  it("is none where it cannot be started, or the run is no process of its own", async () => {
    const { context } = startRun();
    const redirect = { redirectHost: undefined, redirectPort: undefined, preferred: undefined };
    expect(await startListener(redirect, { ...context, program: ["/nowhere/at-all", "x"] })).toBeUndefined();
    expect(await startListener(redirect, { ...context, program: undefined })).toBeUndefined();
  });
});
