import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { mergeAnswer } from "../../../src/oauth/grant/grant.js";
import { fileStore } from "../../../src/store/file/file.js";
import { type HostileCase, RENEWED, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";
import { type Reply, rawBytes, rawJson, reset, type Seen, silence } from "../kit/peer.js";
import type { Run } from "../kit/watched.js";

const TOKEN = "/pool/token";
const ONCE = { "as POST /pool/token": 1 } as const;
const PRINTS = ["access-token"] as const;

const grantOf = async ({ home }: Kit) => (await fileStore(home).list())[0];
/** A login whose token has ended. */
const expired = (kit: Kit) => kit.keep({}, { expiresAt: Date.now() - 1000, obtainedAt: Date.now() - 3_600_000 });

/** An issuer that gives each refresh token's successor once, and takes a second use for theft; with `grace` it does not. */
function rotating(
  kit: Kit,
  { grace = false, before = async (_nth: number) => undefined as Reply | undefined } = {},
): void {
  let current = kit.canaries.get("refresh-token");
  const given = new Map<string, Record<string, unknown>>();
  let generation = 0;
  kit.as.routes[TOKEN] = async ({ body }: Seen, nth: number) => {
    const sent = new URLSearchParams(body).get("refresh_token") ?? "";
    const known = given.get(sent);
    if (known && grace) return (await before(nth)) ?? { json: known };
    if (sent !== current) {
      current = "revoked";
      return { status: 400, json: { error: "invalid_grant" } };
    }
    generation++;
    current = `${kit.canaries.get("refresh-token")}-${generation}`;
    const answer = { ...kit.as.tokens(), refresh_token: current };
    given.set(sent, answer);
    return (await before(nth)) ?? { json: answer };
  };
}

/** A refresh that fails in a way that loses nobody a session: the token has ended, and nothing changes. */
function passing(id: string, came: string, reply: Reply, over: Partial<HostileCase> = {}): HostileCase[] {
  const common = { requests: RENEWED, store: "same", environment: { BROWSER: "false" }, command: "token" } as const;
  return [
    {
      id: `${id}a`,
      came: `a refresh answered with ${came}, and an expired token`,
      done: "an error; the login stays, no browser starts",
      outcome: "unavailable",
      async arrange(kit) {
        await expired(kit);
        kit.as.routes[TOKEN] = reply;
      },
      ...common,
      ...over,
    },
    {
      id: `${id}b`,
      came: `a refresh answered with ${came}, and a token that is valid for 30 more seconds`,
      done: "the stored token is used",
      ...common,
      ...over,
      outcome: "ok",
      prints: PRINTS,
      async arrange(kit) {
        await kit.keep({}, { expiresAt: Date.now() + 30_000, obtainedAt: Date.now() - 3_600_000 });
        kit.as.routes[TOKEN] = reply;
      },
      check: (_, run) => unless({ "a token is printed": run?.stdout.startsWith("canary-access-token-") === true }),
    },
  ];
}

const failures: HostileCase[] = [
  ...([429, 500, 502, 503, 504, 530] as const).flatMap((status) => passing(`F7-${status}`, String(status), { status })),
  ...passing("F7-page", "a page in a 200", { headers: { "content-type": "text/html" }, text: "<html>" }),
  ...passing(
    "F7-captive",
    "a redirect to a login page",
    { status: 302, headers: { location: "http://127.0.0.1:1/portal" } },
    { outcome: "refused" },
  ),
  ...passing("F7-empty", "an empty 200", rawJson("")).map((one) => ({
    ...one,
    // Its body may be what was lost of new tokens: a living token is used from then on with a mark.
    ...(one.id === "F7-emptyb" && { store: "any" as const }),
  })),
  ...passing("F7-401", "a bare 401", { status: 401 }, { outcome: "remote" }),
  ...passing(
    "F7-challenge",
    "a bare 401 with a challenge",
    { status: 401, headers: { "www-authenticate": 'Bearer error="invalid_token"' } },
    { outcome: "auth" },
  ),
  ...passing("F7-403", "a bare 403", { status: 403 }, { outcome: "remote" }),
  ...passing(
    "F7-type",
    "a token that is an object",
    { json: { access_token: {}, token_type: "Bearer" } },
    { outcome: "refused" },
  ),
];

/** A refresh with a token that has ended. */
function renewed(id: string, came: string, done: string, over: Omit<Partial<HostileCase>, "id">): HostileCase {
  return {
    id,
    came,
    done,
    outcome: "ok",
    command: "token",
    arrange: expired,
    prints: PRINTS,
    requests: RENEWED,
    ...over,
  };
}

const generations: HostileCase[] = [
  renewed(
    "F1",
    "20 processes that request a new token at the same time, from an issuer that detects reuse",
    "one token request; all processes get the same new token",
    {
      async arrange(kit) {
        await expired(kit);
        rotating(kit);
      },
      drive: async (kit) => {
        const runs = await Promise.all(Array.from({ length: 20 }, () => kit.run(["token", kit.mcp.url])));
        return runs.find(({ code }) => code !== 0) ?? (runs[0] as Run);
      },
      times: ONCE,
      seconds: 30,
      check: async (kit) =>
        unless({
          "all print the same token": new Set(kit.runs.map(({ stdout }) => stdout)).size === 1,
          "one generation is kept": (await grantOf(kit))?.generation === 2,
        }),
    },
  ),
  renewed(
    "F3",
    "a process that is killed when it holds the lease",
    "the next process refreshes; the session is not lost",
    {
      async arrange(kit) {
        await expired(kit);
        rotating(kit, { grace: true });
      },
      drive: async (kit) => {
        const first = kit.start(["token", kit.mcp.url]);
        const claims = join(kit.home, "claims");
        let isOver = false;
        void first.ended.finally(() => {
          isOver = true;
        });
        while (!isOver && !(existsSync(claims) && readdirSync(claims).some((name) => name.endsWith(".claim"))))
          await new Promise((resolve) => setTimeout(resolve, 1));
        first.child.kill("SIGKILL");
        await first.ended;
        return kit.run(["token", kit.mcp.url]);
      },
      check: async (kit) => unless({ "the login lives": (await grantOf(kit))?.retired === undefined }),
    },
  ),
  renewed(
    "F5",
    "invalid_grant, while another process has stored newer tokens",
    "the newer tokens are used; nothing is deleted",
    {
      async arrange(kit) {
        const grant = await expired(kit);
        kit.as.routes[TOKEN] = async () => {
          const answer = {
            accessToken: kit.canaries.get("access-token"),
            refreshToken: "newer-refresh-token",
            idToken: undefined,
            expiresIn: 3600,
            scope: "tools",
            at: Date.now(),
          };
          await fileStore(kit.home).save(mergeAnswer(grant, answer), grant.generation);
          return { status: 400, json: { error: "invalid_grant" } };
        };
      },
      times: ONCE,
      check: async (kit) =>
        unless({
          "the newer tokens are kept": (await grantOf(kit))?.tokens.refreshToken?.reveal() === "newer-refresh-token",
        }),
    },
  ),
  renewed("F6a", "a response with a new refresh token", "stored", {
    check: async (kit) => unless({ "it is kept": (await grantOf(kit))?.generation === 2 }),
  }),
  renewed("F6b", "a response without a refresh token", "the old one stays stored", {
    async arrange(kit) {
      await expired(kit);
      kit.as.tokenAnswer = { refresh_token: undefined };
    },
    check: async (kit) =>
      unless({
        "the old one stays stored":
          (await grantOf(kit))?.tokens.refreshToken?.reveal() === kit.canaries.get("refresh-token"),
      }),
  }),
  ...[7, "", "two words", { token: "x" }].map((refreshToken, nth) =>
    renewed(
      `F6${"defg"[nth]}`,
      `a response with refresh_token ${JSON.stringify(refreshToken)}`,
      "the access token is used, and the old refresh token stays stored",
      {
        async arrange(kit) {
          await expired(kit);
          kit.as.tokenAnswer = { refresh_token: refreshToken };
        },
        check: async (kit) => {
          const tokens = (await grantOf(kit))?.tokens;
          return unless({
            "the old one stays stored": tokens?.refreshToken?.reveal() === kit.canaries.get("refresh-token"),
            "the new access token is kept": tokens?.accessToken.reveal() === kit.canaries.get("access-token"),
          });
        },
      },
    ),
  ),
  renewed("F6c", "a response with refresh_token null", "the old one stays stored", {
    async arrange(kit) {
      await expired(kit);
      kit.as.tokenAnswer = { refresh_token: null };
    },
    check: async (kit) =>
      unless({
        "the old one stays stored":
          (await grantOf(kit))?.tokens.refreshToken?.reveal() === kit.canaries.get("refresh-token"),
      }),
  }),
];

/** Loses the first answer, after the issuer has given a new refresh token. */
const lostOnce = (lost: Reply) => async (nth: number) => (nth === 1 ? lost : undefined);
const CUT = rawBytes("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{");

const ambiguous: HostileCase[] = [
  ...[reset, CUT].map((lost, nth) =>
    renewed(
      `F8${"ab"[nth]}`,
      `a connection that breaks ${nth === 0 ? "before" : "in the middle of"} the response, from an issuer that allows a retry`,
      "the same refresh token is sent once more, at once",
      {
        async arrange(kit) {
          await expired(kit);
          rotating(kit, { grace: true, before: lostOnce(lost) });
        },
        times: { "as POST /pool/token": 2 },
        check: ({ as }) =>
          unless({
            "it is the same one": as.form(TOKEN, 0).get("refresh_token") === as.form(TOKEN, 1).get("refresh_token"),
          }),
      },
    ),
  ),
  renewed(
    "F8c",
    "a connection that breaks each time, from an issuer that allows a retry",
    "sent twice, not three times; the login stays",
    {
      outcome: "unavailable",
      async arrange(kit) {
        await expired(kit);
        rotating(kit, { grace: true, before: async () => reset });
      },
      times: { "as POST /pool/token": 2 },
    },
  ),
  renewed(
    "F8d",
    "a connection that breaks, from an issuer that detects reuse",
    "an error that reports the lost first response",
    {
      outcome: "auth",
      code: "login_required",
      store: "any",
      async arrange(kit) {
        await expired(kit);
        rotating(kit, { before: lostOnce(reset) });
      },
      says: ["invalid_grant", "the response to the first attempt was lost", "agentauth login"],
      times: { "as POST /pool/token": 2 },
    },
  ),
  renewed(
    "F8e",
    "a connection that breaks, from an issuer that detects reuse, and a token that is valid for 30 more seconds",
    "the stored token is used, and the refresh is not repeated until it expires",
    {
      prints: PRINTS,
      async arrange(kit) {
        await kit.keep({}, { expiresAt: Date.now() + 30_000, obtainedAt: Date.now() - 3_600_000 });
        rotating(kit, { before: lostOnce(reset) });
      },
      times: { "as POST /pool/token": 1 },
      check: async (kit, run) => {
        const grant = await grantOf(kit);
        return unless({
          "a token is printed": run === undefined || run.stdout.startsWith("canary-access-token-"),
          "the login is marked": grant?.lostRefresh !== undefined && grant.retired === undefined,
        });
      },
    },
  ),
  renewed(
    "F9a",
    "a process killed after the issuer has rotated the refresh token, with reuse detection",
    "an error that names the interrupted refresh",
    {
      outcome: "auth",
      store: "any",
      async arrange(kit) {
        await expired(kit);
        rotating(kit, { before: lostOnce(silence) });
      },
      drive: killedInFlight,
      says: ["the refresh that began at", "was interrupted when its process ended"],
      times: { "as POST /pool/token": 2 },
    },
  ),
  renewed("F9b", "the same with an issuer that allows a retry", "the next process gets the tokens", {
    async arrange(kit) {
      await expired(kit);
      rotating(kit, { grace: true, before: lostOnce(silence) });
    },
    drive: killedInFlight,
    times: { "as POST /pool/token": 2 },
  }),
  ...(["SIGINT", "SIGTERM"] as const).map((signal, nth) =>
    renewed(
      `F10${"ab"[nth]}`,
      `${signal} during a refresh`,
      "the command waits for the response, stores it, and exits",
      {
        outcome: nth === 0 ? "aborted" : "terminated",
        store: "any",
        async arrange(kit) {
          await expired(kit);
          rotating(kit, {
            before: async () => {
              await new Promise((resolve) => setTimeout(resolve, 1500));
              return undefined;
            },
          });
        },
        drive: async (kit) => {
          const run = kit.start(["token", kit.mcp.url]);
          await arrived(kit, run.ended);
          run.child.kill(signal);
          return run.ended;
        },
        times: ONCE,
        check: async (kit, run) =>
          unless({
            "the new tokens are kept": (await grantOf(kit))?.generation === 2,
            "nothing is printed": run?.stdout === "",
          }),
      },
    ),
  ),
];

/** Waits until the issuer was asked; or until the run is over. */
async function arrived({ as }: Kit, ended: Promise<unknown>): Promise<void> {
  let isOver = false;
  void ended.finally(() => {
    isOver = true;
  });
  while (!isOver && as.to(TOKEN).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Kills a run while its refresh is on its way, and gives the next one. */
async function killedInFlight(kit: Kit): Promise<Run> {
  const first = kit.start(["token", kit.mcp.url]);
  await arrived(kit, first.ended);
  first.child.kill("SIGKILL");
  await first.ended;
  return kit.run(["token", kit.mcp.url]);
}

const verdicts: HostileCase[] = [
  renewed(
    "F11-unauthorized_client",
    "unauthorized_client for a refresh, which an administrator can undo",
    "an error; one request; the login is unchanged",
    {
      outcome: "auth",
      code: "unauthorized_client",
      async arrange(kit) {
        await expired(kit);
        kit.as.routes[TOKEN] = { status: 400, json: { error: "unauthorized_client" } };
      },
      says: ["unauthorized_client"],
      times: ONCE,
      check: async (kit) => unless({ "it is not marked": (await grantOf(kit))?.retired === undefined }),
    },
  ),
  ...(["invalid_grant", "invalid_client"] as const).map((error) =>
    renewed(
      `F11-${error}`,
      `${error} for a refresh, with a text that repeats the tokens`,
      "an error; one request; the login is marked as expired, not deleted",
      {
        outcome: "auth",
        code: "login_required",
        store: "any",
        async arrange(kit) {
          await expired(kit);
          kit.as.routes[TOKEN] = ({ body }) => ({ status: 400, json: { error, error_description: `no: ${body}` } });
        },
        says: [error, "agentauth login"],
        times: ONCE,
        check: async (kit) => unless({ "it is marked": (await grantOf(kit))?.retired !== undefined }),
      },
    ),
  ),
  {
    id: "F13a",
    came: "an MCP server that answers 401 to each new token",
    done: "one refresh and one repeated request, then an error",
    outcome: "auth",
    async arrange(kit) {
      await kit.keep();
      kit.mcp.routes["/mcp"] = () => kit.mcp.refusal();
    },
    command: ({ mcp }) => ["request", mcp.url],
    store: "any",
    times: { ...ONCE, "mcp POST /mcp": 0, "mcp GET /mcp": 2 },
  },
  {
    id: "F13b",
    came: "the same, five commands in a row",
    done: "three refreshes, then none within the minute",
    outcome: "auth",
    async arrange(kit) {
      await kit.keep();
      kit.mcp.routes["/mcp"] = () => kit.mcp.refusal();
    },
    drive: async (kit) => {
      for (let nth = 0; nth < 4; nth++) await kit.run(["request", kit.mcp.url]);
      return kit.run(["request", kit.mcp.url]);
    },
    store: "any",
    says: ["rejected three new tokens within a minute"],
    times: { "as POST /pool/token": 3 },
  },
  {
    id: "F15",
    came: "an MCP server that answers 403 insufficient_scope with a scope that is a shell command",
    done: "an error; the suggested command does not contain it",
    outcome: "auth",
    async arrange(kit) {
      await kit.keep();
      kit.mcp.routes["/mcp"] = {
        status: 403,
        headers: { "www-authenticate": 'Bearer error="insufficient_scope", scope="$(touch pwned) \\"; rm -rf /"' },
      };
    },
    command: ({ mcp }) => ["request", mcp.url],
    check: (_, run) => unless({ "the hint is plain": !/hint:.*[$;`]/.test(run?.stderr ?? "") }),
    requests: ["mcp GET /mcp"],
  },
  {
    id: "F16",
    came: "an MCP server that redirects a request with a token to another origin",
    done: "the token is not sent there",
    outcome: "ok",
    async arrange(kit) {
      await kit.keep();
      kit.mcp.routes["/mcp"] = { status: 307, headers: { location: `${kit.other.origin}/collect` } };
      kit.other.routes["/collect"] = { json: { ok: true } };
    },
    command: ({ mcp }) => ["request", mcp.url],
    requests: ["mcp GET /mcp", "other GET /collect"],
    check: ({ other }) => unless({ "no token is sent": other.to("/collect")[0]?.headers.authorization === undefined }),
  },
];

/** What renewing a token meets (RFC 6749 section 6). */
export const refresh: readonly HostileCase[] = [...failures, ...generations, ...ambiguous, ...verdicts];
