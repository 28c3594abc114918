import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { mergeResponse } from "../../../src/oauth/model/grant.js";
import { fileStore } from "../../../src/store/file/file.js";
import { type Reply, rawBytes, rawJson, reset, type Seen, silence } from "../../helpers/peer.js";
import { type HostileCase, REFRESH, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";
import type { Run } from "../kit/watched.js";

const TOKEN = "/pool/token";
const ONCE = { "as POST /pool/token": 1 } as const;
const PRINTS = ["access-token"] as const;

const grantOf = async ({ home }: Kit) => (await fileStore(home).list())[0];
/** A login with an expired token. */
const expired = (kit: Kit) => kit.saveLogin({}, { expiresAt: Date.now() - 1000, obtainedAt: Date.now() - 3_600_000 });

/** An issuer that rotates refresh tokens and detects reuse; with `grace` it accepts reuse. */
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

/** A temporary failure of a refresh, with an expired and with a valid token: the session stays. */
function temporaryFailure(id: string, input: string, reply: Reply, over: Partial<HostileCase> = {}): HostileCase[] {
  const common = { requests: REFRESH, store: "same", environment: { BROWSER: "false" }, command: "token" } as const;
  return [
    {
      id: `${id}a`,
      input: `a refresh answered with ${input}, and an expired token`,
      result: "an error; the login stays, no browser starts",
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
      input: `a refresh answered with ${input}, and a token that is valid for 30 more seconds`,
      result: "the stored token is used",
      ...common,
      ...over,
      outcome: "ok",
      prints: PRINTS,
      async arrange(kit) {
        await kit.saveLogin({}, { expiresAt: Date.now() + 30_000, obtainedAt: Date.now() - 3_600_000 });
        kit.as.routes[TOKEN] = reply;
      },
      check: (_, run) => unless({ "a token is printed": run?.stdout.startsWith("canary-access-token-") === true }),
    },
  ];
}

const failures: HostileCase[] = [
  ...([429, 500, 502, 503, 504, 530] as const).flatMap((status) =>
    temporaryFailure(`F7-${status}`, String(status), { status }),
  ),
  ...temporaryFailure("F7-page", "a page in a 200", { headers: { "content-type": "text/html" }, text: "<html>" }),
  ...temporaryFailure(
    "F7-captive",
    "a redirect to a login page",
    { status: 302, headers: { location: "http://127.0.0.1:1/portal" } },
    { outcome: "refused" },
  ),
  ...temporaryFailure("F7-empty", "an empty 200", rawJson("")).map((one) => ({
    ...one,
    // The body may have held new tokens, so the grant is marked as a lost refresh.
    ...(one.id === "F7-emptyb" && { store: "any" as const }),
  })),
  ...temporaryFailure("F7-401", "a bare 401", { status: 401 }, { outcome: "remote" }),
  ...temporaryFailure(
    "F7-challenge",
    "a bare 401 with a challenge",
    { status: 401, headers: { "www-authenticate": 'Bearer error="invalid_token"' } },
    { outcome: "auth" },
  ),
  ...temporaryFailure("F7-403", "a bare 403", { status: 403 }, { outcome: "remote" }),
  ...temporaryFailure(
    "F7-type",
    "a token that is an object",
    { json: { access_token: {}, token_type: "Bearer" } },
    { outcome: "refused" },
  ),
];

/** A refresh with an expired token. */
function refreshed(id: string, input: string, result: string, over: Omit<Partial<HostileCase>, "id">): HostileCase {
  return {
    id,
    input,
    result,
    outcome: "ok",
    command: "token",
    arrange: expired,
    prints: PRINTS,
    requests: REFRESH,
    ...over,
  };
}

const generations: HostileCase[] = [
  refreshed(
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
          "one new generation is stored": (await grantOf(kit))?.generation === 2,
        }),
    },
  ),
  refreshed(
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
        let hasExited = false;
        void first.ended.finally(() => {
          hasExited = true;
        });
        while (!hasExited && !(existsSync(claims) && readdirSync(claims).some((name) => name.endsWith(".claim"))))
          await new Promise((resolve) => setTimeout(resolve, 1));
        first.child.kill("SIGKILL");
        await first.ended;
        return kit.run(["token", kit.mcp.url]);
      },
      check: async (kit) => unless({ "the login is valid": (await grantOf(kit))?.retired === undefined }),
    },
  ),
  refreshed(
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
          await fileStore(kit.home).save(mergeResponse(grant, answer), grant.generation);
          return { status: 400, json: { error: "invalid_grant" } };
        };
      },
      times: ONCE,
      check: async (kit) =>
        unless({
          "the newer tokens are stored": (await grantOf(kit))?.tokens.refreshToken?.reveal() === "newer-refresh-token",
        }),
    },
  ),
  refreshed("F6a", "a response with a new refresh token", "stored", {
    check: async (kit) => unless({ "the new generation is stored": (await grantOf(kit))?.generation === 2 }),
  }),
  refreshed("F6b", "a response without a refresh token", "the old one stays stored", {
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
    refreshed(
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
            "the new access token is stored": tokens?.accessToken.reveal() === kit.canaries.get("access-token"),
          });
        },
      },
    ),
  ),
  refreshed("F6h", "a response with an id_token of another issuer", "the tokens are stored without it", {
    async arrange(kit) {
      await expired(kit);
      const claims = { iss: "https://evil.example", aud: "client-1", sub: "admin" };
      const parts = [{ alg: "RS256" }, claims, {}].map((part) =>
        Buffer.from(JSON.stringify(part)).toString("base64url"),
      );
      kit.as.tokenAnswer = { id_token: parts.join(".") };
    },
    check: async (kit) =>
      unless({
        "the one of the login stays stored":
          (await grantOf(kit))?.tokens.idToken?.reveal() === kit.canaries.get("id-token"),
      }),
  }),
  refreshed(
    "F6i",
    "a response with expires_in 0, from two commands",
    "each command refreshes once and uses the token",
    {
      async arrange(kit) {
        await expired(kit);
        kit.as.tokenAnswer = { expires_in: 0 };
      },
      drive: async (kit) => {
        await kit.run(["token", kit.mcp.url]);
        return kit.run(["token", kit.mcp.url]);
      },
      times: { "as POST /pool/token": 2 },
      check: (_, run) => unless({ "a token is printed": run === undefined || run.stdout !== "" }),
    },
  ),
  refreshed("F6c", "a response with refresh_token null", "the old one stays stored", {
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

/** Loses the first response, after the issuer has rotated the refresh token. */
const lostOnce = (lost: Reply) => async (nth: number) => (nth === 1 ? lost : undefined);
const CUT = rawBytes("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{");

const ambiguous: HostileCase[] = [
  ...[reset, CUT].map((lost, nth) =>
    refreshed(
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
  refreshed(
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
  refreshed(
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
  refreshed(
    "F8e",
    "a connection that breaks, from an issuer that detects reuse, and a token that is valid for 30 more seconds",
    "the stored token is used, and the refresh is not repeated until it expires",
    {
      prints: PRINTS,
      async arrange(kit) {
        await kit.saveLogin({}, { expiresAt: Date.now() + 30_000, obtainedAt: Date.now() - 3_600_000 });
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
  refreshed(
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
      drive: killDuringRefresh,
      says: ["the refresh that began at", "was interrupted when its process ended"],
      times: { "as POST /pool/token": 2 },
    },
  ),
  refreshed("F9b", "the same with an issuer that allows a retry", "the next process gets the tokens", {
    async arrange(kit) {
      await expired(kit);
      rotating(kit, { grace: true, before: lostOnce(silence) });
    },
    drive: killDuringRefresh,
    times: { "as POST /pool/token": 2 },
  }),
  ...(["SIGINT", "SIGTERM"] as const).map((signal, nth) =>
    refreshed(
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
          await requestArrived(kit, run.ended);
          run.child.kill(signal);
          return run.ended;
        },
        times: ONCE,
        check: async (kit, run) =>
          unless({
            "the new tokens are stored": (await grantOf(kit))?.generation === 2,
            "nothing is printed": run?.stdout === "",
          }),
      },
    ),
  ),
];

/** Waits for the first token request or the end of the run. */
async function requestArrived({ as }: Kit, ended: Promise<unknown>): Promise<void> {
  let hasExited = false;
  void ended.finally(() => {
    hasExited = true;
  });
  while (!hasExited && as.to(TOKEN).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Kills a run during its refresh, and returns the next run. */
async function killDuringRefresh(kit: Kit): Promise<Run> {
  const first = kit.start(["token", kit.mcp.url]);
  await requestArrived(kit, first.ended);
  first.child.kill("SIGKILL");
  await first.ended;
  return kit.run(["token", kit.mcp.url]);
}

const verdicts: HostileCase[] = [
  refreshed(
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
    refreshed(
      `F11-${error}`,
      `${error} for a refresh, with a text that repeats the tokens`,
      "an error; one request, and one that confirms a refused client; the login is marked as expired, not deleted",
      {
        outcome: "auth",
        code: "login_required",
        store: "any",
        async arrange(kit) {
          await expired(kit);
          kit.as.routes[TOKEN] = ({ body }) => ({ status: 400, json: { error, error_description: `no: ${body}` } });
        },
        says: [error, "agentauth login"],
        times: { "as POST /pool/token": error === "invalid_client" ? 2 : 1 },
        check: async (kit) => unless({ "it is marked": (await grantOf(kit))?.retired !== undefined }),
      },
    ),
  ),
  ...(
    [
      [
        "V10",
        "invalid_client for one refresh alone, from a node that does not know the client yet",
        { error: "invalid_client" },
        (_form: URLSearchParams, nth: number) => nth === 1,
      ],
      [
        "V7a",
        "a refusal of the parameter resource in a refresh",
        { error: "invalid_request", error_description: "Unrecognized request parameter: resource" },
        (form: URLSearchParams) => form.has("resource"),
      ],
      [
        "V7b",
        "a refusal of a refresh that names no scopes, at an unknown host",
        {
          error: "invalid_request",
          error_description: "AADSTS90009: Application 'x' is requesting a token for itself.",
        },
        (form: URLSearchParams) => form.get("scope") !== "tools",
      ],
    ] as const
  ).map(([id, input, json, refuses]) =>
    refreshed(id, input, "once more as the issuer wants it, and so from then on; the login stays", {
      async arrange(kit) {
        await expired(kit);
        kit.as.routes[TOKEN] = ({ body }, nth) =>
          refuses(new URLSearchParams(body), nth) ? { status: 400, json } : { json: kit.as.tokens() };
      },
      drive: async (kit) => {
        await kit.run(["token", kit.mcp.url]);
        return kit.run(["token", kit.mcp.url, "--force-refresh"]);
      },
      check: async (kit) =>
        unless({
          "the login is valid": (await grantOf(kit))?.retired === undefined,
          "the second refresh is one request": kit.as.to(TOKEN).length <= 4,
        }),
    }),
  ),
  {
    id: "F13a",
    input: "an MCP server that answers 401 to each new token",
    result: "one refresh and one repeated request, then an error",
    outcome: "auth",
    async arrange(kit) {
      await kit.saveLogin();
      kit.mcp.routes["/mcp"] = () => kit.mcp.refusal();
    },
    command: ({ mcp }) => ["request", mcp.url],
    store: "any",
    times: { ...ONCE, "mcp POST /mcp": 0, "mcp GET /mcp": 2 },
  },
  {
    id: "F13b",
    input: "the same, five commands in a row",
    result: "three refreshes, then none within the minute",
    outcome: "auth",
    async arrange(kit) {
      await kit.saveLogin();
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
    input: "an MCP server that answers 403 insufficient_scope with a scope that is a shell command",
    result: "an error; the suggested command does not contain it",
    outcome: "auth",
    async arrange(kit) {
      await kit.saveLogin();
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
    input: "an MCP server that redirects a request with a token to another origin",
    result: "the token is not sent there",
    outcome: "ok",
    async arrange(kit) {
      await kit.saveLogin();
      kit.mcp.routes["/mcp"] = { status: 307, headers: { location: `${kit.other.origin}/collect` } };
      kit.other.routes["/collect"] = { json: { ok: true } };
    },
    command: ({ mcp }) => ["request", mcp.url],
    requests: ["mcp GET /mcp", "other GET /collect"],
    check: ({ other }) => unless({ "no token is sent": other.to("/collect")[0]?.headers.authorization === undefined }),
  },
];

/** Refreshes (RFC 6749 section 6). */
export const refresh: readonly HostileCase[] = [...failures, ...generations, ...ambiguous, ...verdicts];
