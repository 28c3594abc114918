import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileStore } from "../../../src/store/file/file.js";
import { FakeClock } from "../../helpers/clock.js";
import type { Reply } from "../../helpers/peer.js";
import { freePort } from "../../helpers/port.js";
import { type HostileCase, UP_TO_AUTHORIZATION, UP_TO_REGISTRATION, unless, WHOLE_LOGIN } from "../case.js";
import { request, sendRaw, targetOf } from "../kit/forger.js";
import type { Kit } from "../kit/kit.js";
import { logsIn, neverLogsIn } from "../kit/user.js";
import type { Run } from "../kit/watched.js";

interface Begun {
  login_id: string;
  url: string;
}

/** The first step; `flags` choose its flow. */
async function begin(kit: Kit, ...flags: string[]): Promise<Begun> {
  const args = ["login", kit.mcp.url, "--no-wait", "--json", ...flags];
  const { code, stdout, stderr } = await kit.run(args, { user: neverLogsIn });
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Begun;
}

/** A port that the system gives to no other program between the steps. */
const ownPort = async () => ["--redirect-port", String(await freePort())];

/** The second step of a user who does not open the URL that it may print. */
const finish = (kit: Kit, id: string, flags: readonly string[] = [], stdin?: string) =>
  kit.run(["login", kit.mcp.url, "--wait", id, ...flags], { user: neverLogsIn, stdin });

const fileOf = (kit: Kit, { login_id }: Begun, kind: string) => join(kit.home, "logins", `${login_id}.${kind}`);
const files = (kit: Kit) => {
  const folder = join(kit.home, "logins");
  return existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith(".listener")) : [];
};
const stateOf = (begun: Begun) => new URL(begun.url).searchParams.get("state") ?? "";

const isLeft = async (kit: Kit) => [
  ...(await noGrant(kit)),
  ...unless({ "the login is left": files(kit).length === 1 }),
];
const isRemoved = async (kit: Kit) => [
  ...(await noGrant(kit)),
  ...unless({ "the login is removed": files(kit).length === 0 }),
];
const noGrant = async ({ home }: Kit) => unless({ "no login is stored": (await fileStore(home).list()).length === 0 });

const common = { store: "logins", cliOnly: true } as const;

/** A callback on stdin of the second step, changed from that of the issuer. */
function pasted(
  id: string,
  input: string,
  change: (callback: URL, kit: Kit) => unknown,
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    ...common,
    id,
    input: `two steps: a callback ${input}`,
    result: "refused; the code is not sent, and the right one finishes the login later",
    outcome: "usage",
    requests: UP_TO_REGISTRATION,
    async drive(kit) {
      const begun = await begin(kit, "--flow", "paste");
      const { searchParams } = new URL(begun.url);
      const callback = new URL(searchParams.get("redirect_uri") ?? "");
      callback.search = `${new URLSearchParams({ code: "forged", state: stateOf(begun), iss: kit.as.issuer })}`;
      change(callback, kit);
      return finish(kit, begun.login_id, ["--callback-url", callback.href]);
    },
    check: isLeft,
    ...over,
  };
}

const callbacks: readonly HostileCase[] = [
  pasted("C27a", "of another state", ({ searchParams }) => searchParams.set("state", "x".repeat(43)), {
    says: ["state mismatch"],
  }),
  pasted("C27b", "of another issuer", ({ searchParams }) => searchParams.set("iss", "https://evil.example"), {
    outcome: "refused",
    says: ["RFC 9207"],
  }),
  pasted("C27c", "with two codes", ({ searchParams }) => searchParams.append("code", "other"), {
    says: ["code more than once"],
  }),
  pasted("C27d", "at another address", (callback) => Object.assign(callback, { pathname: "/other" }), {
    says: ["it is not the redirect address"],
  }),
  pasted(
    "C27e",
    "with an error whose description has escape sequences",
    ({ searchParams }) => {
      searchParams.delete("code");
      searchParams.set("error", "access_denied");
      searchParams.set("error_description", "\u001b[2Jno");
    },
    { outcome: "auth", says: ['"access_denied"', "\\e[2J"], result: "an error that shows it escaped" },
  ),
  {
    ...common,
    id: "C27f",
    input: "two steps: the right callback twice",
    result: "the second one finds no login; its code is sent once",
    outcome: "usage",
    store: "any",
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/token": 1 },
    says: ["no started login"],
    async drive(kit) {
      const begun = await begin(kit, "--flow", "paste");
      const { headers } = await fetch(begun.url, { redirect: "manual" });
      const callback = `${headers.get("location")}\n`;
      const first = await finish(kit, begun.login_id, [], callback);
      return first.code === 0 ? finish(kit, begun.login_id, [], callback) : first;
    },
    check: (kit) => unless({ "nothing is left": files(kit).length === 0 }),
  },
];

/** The second step of a login that belongs to another user or another server. */
function foreign(
  id: string,
  input: string,
  drive: (kit: Kit, begun: Begun) => Promise<Run>,
  says: string,
): HostileCase {
  return {
    ...common,
    id,
    input: `two steps: ${input}`,
    result: "refused before any request; the login is left",
    outcome: "usage",
    requests: UP_TO_REGISTRATION,
    says: [says],
    drive: async (kit) => drive(kit, await begin(kit)),
    check: isLeft,
  };
}

const owners: readonly HostileCase[] = [
  foreign(
    "C27g",
    "the login id of another user",
    (kit, { login_id }) => {
      const env = { AGENTAUTH_HOME: join(kit.folder, "other") };
      return kit.run(["login", kit.mcp.url, "--wait", login_id], { env, user: neverLogsIn });
    },
    "no started login",
  ),
  foreign(
    "C27h",
    "the login id of another profile",
    (kit, { login_id }) => {
      const set = ["config", "set", "base_url", kit.service.origin, "--profile", "work"];
      return kit.run(set).then(() => finish(kit, login_id, ["--profile", "work"]));
    },
    "belongs to the profile",
  ),
  foreign(
    "C27i",
    "the login id of another server",
    (kit, { login_id }) => kit.run(["login", `${kit.elsewhere.origin}/mcp`, "--wait", login_id]),
    "is for ",
  ),
  foreign("C27j", "a login id that is a path", (kit) => finish(kit, "../../secret"), "is not a login id"),
];

/** The file of a callback that another process wrote. */
function stored(
  id: string,
  input: string,
  text: (state: string) => string,
  outcome: HostileCase["outcome"],
  says: string,
  over: Partial<HostileCase> & { mode?: number } = {},
): HostileCase {
  const { mode = 0o600, ...rest } = over;
  return {
    ...common,
    id,
    input: `two steps: a file of the callback that ${input}`,
    result: "an error; the login is removed, since its callback came",
    outcome,
    requests: UP_TO_REGISTRATION,
    says: [says],
    async drive(kit) {
      const begun = await begin(kit);
      const path = fileOf(kit, begun, "callback");
      writeFileSync(path, `${text(stateOf(begun))}\n`, { mode });
      chmodSync(path, mode);
      return finish(kit, begun.login_id);
    },
    check: isRemoved,
    ...rest,
  };
}

const storedCallbacks: readonly HostileCase[] = [
  stored("C28a", "has another state", () => "code=c&state=other", "refused", "its state differs"),
  stored("C28b", "names another issuer", (state) => `code=c&state=${state}&iss=https://evil.example`, "refused", "iss"),
  stored("C28c", "has two states", (state) => `code=c&state=${state}&state=${state}`, "refused", "must come once"),
  stored("C28d", "has no code", (state) => `state=${state}`, "refused", "iss"),
  stored("C28e", "has an error", (state) => `error=access_denied&state=${state}`, "refused", "iss"),
  stored("C28f", "is empty", () => "", "refused", "state"),
  stored("C28g", "other users can read", (state) => `code=c&state=${state}`, "store", "chmod 600", {
    mode: 0o644,
    result: "not used; an error names the file and the command that repairs it",
    check: noGrant,
  }),
  {
    ...stored("C28h", "has a forged code", () => "", "auth", "invalid_grant"),
    requests: [...UP_TO_REGISTRATION, "as POST /pool/token"],
    result: "the issuer refuses it; the login is removed",
    async drive(kit) {
      const begun = await begin(kit);
      kit.as.routes["/pool/token"] = { status: 400, json: { error: "invalid_grant" } };
      const text = new URLSearchParams({ code: "forged", state: stateOf(begun), iss: kit.as.issuer });
      writeFileSync(fileOf(kit, begun, "callback"), `${text}\n`, { mode: 0o600 });
      return finish(kit, begun.login_id);
    },
  },
];

/** The file of the started login, changed between the two steps. */
function tampered(
  id: string,
  input: string,
  change: (text: string) => string,
  over: Partial<HostileCase> & { mode?: number } = {},
): HostileCase {
  const { mode = 0o600, ...rest } = over;
  return {
    ...common,
    id,
    input: `two steps: a file of the started login that ${input}`,
    result: "not used; an error names the file and what to do",
    outcome: "store",
    requests: UP_TO_REGISTRATION,
    says: ["logins/"],
    async drive(kit) {
      const begun = await begin(kit);
      const path = fileOf(kit, begun, "json");
      writeFileSync(path, change(readFileSync(path, "utf8")));
      chmodSync(path, mode);
      return finish(kit, begun.login_id);
    },
    check: isLeft,
    ...rest,
  };
}

const changed = (text: string, change: (members: Record<string, Record<string, unknown>>) => unknown) => {
  const members = JSON.parse(text) as Record<string, Record<string, unknown>>;
  change(members);
  return JSON.stringify(members);
};

const startedLogins: readonly HostileCase[] = [
  tampered("C28i", "is cut off", (text) => text.slice(0, 100)),
  tampered("C28j", "has a redirect address that is none", (text) =>
    changed(text, ({ pending }) => Object.assign(pending ?? {}, { redirectUri: "" })),
  ),
  tampered("C28k", "has a key twice", (text) => text.replace("{", '{ "server": "https://evil.example",')),
  tampered("C28l", "other users can read", (text) => text, { mode: 0o644, says: ["chmod 600"] }),
];

/** Waits until a condition holds. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A process of the first step that waits for the callback; ends with the second step. */
async function listening(kit: Kit, attack: (url: URL, begun: Begun) => Promise<unknown>): Promise<Run> {
  const begun = await begin(kit, ...(await ownPort()));
  const url = new URL(begun.url);
  if (!existsSync(fileOf(kit, begun, "listener"))) await startReceiver(kit, begun, url);
  await attack(url, begun);
  await until(() => !existsSync(fileOf(kit, begun, "listener")));
  return finish(kit, begun.login_id);
}

async function startReceiver(kit: Kit, { login_id: id }: Begun, url: URL): Promise<void> {
  const watched = kit.start(["receive-callback"], { keepsStdinOpen: true });
  const say = (message: object) => watched.child.stdin?.write(`${JSON.stringify(message)}\n`);
  say({ preferred: url.searchParams.get("redirect_uri") });
  await until(() => watched.stdout().includes("redirectUri"));
  say({ id, state: url.searchParams.get("state"), ttlMs: 60_000 });
  await until(() => watched.stdout().includes("isHeld"));
}

/** How many forged callbacks reach the process that waits, and how many at once. */
const FORGED = 10_000;
const WIDTH = 20;

const listeners: readonly HostileCase[] = [
  {
    ...common,
    id: "C29a",
    input: "two steps: 10,000 forged callbacks at the process that waits",
    result: "rejected, and nothing of them is stored; the login succeeds",
    seconds: 120,
    limit: 600,
    outcome: "ok",
    store: "any",
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/token": 1 },
    drive: (kit) =>
      listening(kit, async (url, begun) => {
        const target = targetOf(url);
        const forged = request(target, "/callback?code=forged&state=wrong");
        let left = FORGED;
        let answered = 0;
        const worker = async () => {
          while (left-- > 0) if ((await sendRaw(target.port, forged)).startsWith("HTTP/1.1 400")) answered++;
        };
        await Promise.all(Array.from({ length: WIDTH }, worker));
        if (answered !== FORGED) kit.pages.push(`only ${answered} were rejected`);
        if (existsSync(fileOf(kit, begun, "callback"))) kit.pages.push("a forged callback is stored");
        await logsIn(url, kit);
      }),
    check: ({ pages }) => unless({ [`the only page is that of the login: ${pages[0]}`]: pages.length === 1 }),
  },
  {
    ...common,
    id: "C29b",
    input: "two steps: the right callback from a page of another origin, and by POST",
    result: "rejected by the process that waits; the login succeeds",
    outcome: "ok",
    store: "any",
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/token": 1 },
    drive: (kit) =>
      listening(kit, async (url) => {
        const target = targetOf(url);
        const right = `/callback?code=forged&state=${target.state}`;
        const foreignPage = ["Origin: https://evil.example"];
        kit.pages.push(await sendRaw(target.port, request(target, right, foreignPage)));
        kit.pages.push(await sendRaw(target.port, request(target, right, ["Content-Length: 0"], "POST")));
        await logsIn(url, kit);
      }),
    check: ({ pages: [origin = "", post = ""] }) =>
      unless({ "the page is refused": / 403 /.test(origin), "POST is refused": / 405 /.test(post) }),
  },
  {
    ...common,
    id: "C29c",
    input: "two steps: a callback of another issuer at the process that waits",
    result: "refused by the second step; the code is not sent",
    outcome: "refused",
    requests: UP_TO_AUTHORIZATION,
    says: ["RFC 9207"],
    drive(kit) {
      kit.as.callback = { iss: "https://evil.example" };
      return listening(kit, async (url) => logsIn(url, kit));
    },
    check: isRemoved,
  },
  {
    ...common,
    id: "C29d",
    input: "two steps: a process that waits for the callback of a login id that is a path",
    result: "an error; nothing is written",
    outcome: "usage",
    requests: [],
    says: ["is not a login id"],
    async drive(kit) {
      const watched = kit.start(["receive-callback"], { keepsStdinOpen: true });
      watched.child.stdin?.write("{}\n");
      await until(() => watched.stdout().includes("redirectUri"));
      watched.child.stdin?.end(`${JSON.stringify({ id: "../../secret", state: "s", ttlMs: 1000 })}\n`);
      return watched.ended;
    },
    check: (kit) => unless({ "nothing is written": files(kit).length === 0 }),
  },
  {
    ...common,
    id: "C29e",
    input: "two steps: another program that takes the port of the callback between them",
    result: "an error that names the port; no code is awaited there, and the login is left",
    outcome: "usage",
    requests: UP_TO_REGISTRATION,
    says: ["another program uses it"],
    async drive(kit) {
      const begun = await begin(kit, "--flow", "paste", ...(await ownPort()));
      const path = fileOf(kit, begun, "json");
      // As if the process of the first step had been killed.
      writeFileSync(path, readFileSync(path, "utf8").replace(/\n *"flow": "paste",?/, ""));
      const thief = createServer().listen(targetOf(new URL(begun.url)).port, "127.0.0.1");
      await once(thief, "listening");
      const run = await finish(kit, begun.login_id);
      thief.close();
      return run;
    },
    check: isLeft,
  },
];

/** The second step of a device login, on a clock where waiting takes no time. */
function polled(
  id: string,
  input: string,
  reply: Reply,
  over: Partial<HostileCase> & { wait?: readonly string[] },
): HostileCase {
  const { wait = [], ...rest } = over;
  return {
    ...common,
    id,
    input: `two steps: a device login whose issuer answers ${input}`,
    result: "an error",
    outcome: "auth",
    requests: [...UP_TO_REGISTRATION, "as POST /pool/device", "as POST /pool/token"],
    async drive(kit) {
      const { login_id } = await begin(kit, "--flow", "device");
      kit.as.routes["/pool/token"] = reply;
      const clock = new FakeClock(Date.now());
      return kit.run(["login", kit.mcp.url, "--wait", login_id, ...wait], { clock });
    },
    ...rest,
  };
}

const error = (code: string): Reply => ({ status: 400, json: { error: code } });
const ONCE = { "as POST /pool/token": 1 } as const;

const devices: readonly HostileCase[] = [
  polled("C30a", "access_denied", error("access_denied"), {
    says: ["access_denied"],
    result: "an error after one request; the login is removed",
    times: ONCE,
    check: isRemoved,
  }),
  polled("C30b", "expired_token", error("expired_token"), {
    says: ["expired_token"],
    result: "an error after one request; the login is removed",
    times: ONCE,
    check: isRemoved,
  }),
  polled("C30c", "slow_down forever", error("slow_down"), {
    wait: ["--login-timeout", "30"],
    says: ["within 30 seconds"],
    result: "five seconds more between two requests after each; the interval is stored for the next process",
    // After 1, 6 and 11 seconds.
    times: { "as POST /pool/token": 3 },
    check: async (kit) => {
      const [name = ""] = files(kit);
      const { device } = JSON.parse(readFileSync(join(kit.home, "logins", name), "utf8")) as {
        device: { intervalSeconds: number };
      };
      return [
        ...(await isLeft(kit)),
        ...unless({ [`16 seconds are stored: ${device.intervalSeconds}`]: device.intervalSeconds === 16 }),
      ];
    },
  }),
  polled("C30d", "authorization_pending forever", error("authorization_pending"), {
    says: ["the code was not entered in time"],
    result: "an error when the code expires; the login is removed",
    check: isRemoved,
  }),
  polled(
    "C30e",
    "a page in place of JSON",
    { text: "<html>\u001b[2J</html>", headers: { "content-type": "text/html" } },
    {
      says: ["the code was not entered in time"],
      result: "polled less and less often until the code expires; nothing is stored",
      check: isRemoved,
    },
  ),
];

/** What is hostile between the two steps of a login. */
export const twoStepLogin: readonly HostileCase[] = [
  ...callbacks,
  ...owners,
  ...storedCallbacks,
  ...startedLogins,
  ...listeners,
  ...devices,
];
