import { connect } from "node:net";
import { fileStore } from "../../../src/store/file/file.js";
import { type HostileCase, UP_TO_AUTHORIZATION, unless, WHOLE_LOGIN } from "../case.js";
import { forged, request, sendRaw, type Target, targetOf } from "../kit/forger.js";
import type { Kit } from "../kit/kit.js";
import { neverLogsIn, readPage } from "../kit/user.js";

const LOGGED_IN = /^200 [\s\S]*You are logged in/;

/** A request to the listener that changes nothing: the login succeeds. */
function ignored(
  id: string,
  input: string,
  statuses: readonly number[],
  attempts: (target: Target) => readonly string[],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input: `a request to the listener ${input}`,
    result: "rejected; the login continues",
    outcome: "ok",
    cliOnly: true,
    user: forged(attempts),
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/token": 1 },
    check: ({ pages }) => {
      const attacks = pages.slice(0, -1);
      const found = attacks.map((page) => Number(/^HTTP\/1\.1 (\d{3})/.exec(page)?.[1] ?? 0));
      return unless({
        [`each is answered with ${statuses.join(" or ")}, not ${[...new Set(found)].join(", ")}`]: found.every(
          (status) => statuses.includes(status),
        ),
        "no page contains it": !attacks.some((page) => /forged|\bevil\b/.test(page)),
        "the user is logged in": LOGGED_IN.test(pages.at(-1) ?? ""),
      });
    },
    ...over,
  };
}

const right = ({ state }: Target) => `/callback?code=forged&state=${state}`;
const toPath = (path: string) => (target: Target) => [request(target, path)];
const withHeaders =
  (...headers: string[]) =>
  (target: Target) => [request(target, right(target), headers)];
const byMethod = (method: string) => (target: Target) => [
  request(target, right(target), ["Content-Length: 0"], method),
];

const rejectedRequests: HostileCase[] = [
  ignored("C3", "without a state", [400], toPath("/callback?code=forged")),
  ignored("C4a", "with a wrong state, before the user logs in", [400], toPath("/callback?code=forged&state=wrong")),
  ignored(
    "C4b",
    "with a wrong state, 60 times",
    [400],
    (target) => Array(60).fill(request(target, "/callback?code=forged&state=wrong")),
    {
      says: ["probing port", "50 wrong callbacks were rejected"],
    },
  ),
  ignored("C4c", "with the state truncated, in another case, and with a space", [400], (target) =>
    [target.state.slice(0, -1), target.state.toUpperCase(), `${target.state}%20`].map((state) =>
      request(target, `/callback?code=forged&state=${state}`),
    ),
  ),
  ignored("C7a", "with an error and no state", [400], toPath("/callback?error=access_denied&error_description=evil"), {
    says: ['the error "access_denied" without the state'],
  }),
  ignored(
    "C7b",
    "with an error and a wrong state",
    [400],
    toPath("/callback?error=server_error&state=wrong&error_description=evil"),
  ),
  ignored("C9a", "by another host's name (DNS rebinding)", [403], (target) => [
    request({ ...target, host: `evil.example:${target.port}` }, right(target)),
  ]),
  ignored("C9b", "from a web page (Origin)", [403], withHeaders("Origin: https://evil.example")),
  ignored("C9c", "for an image (Sec-Fetch-Dest)", [403], withHeaders("Sec-Fetch-Dest: image")),
  ignored("C9d", "for a prefetch (Sec-Purpose)", [403], withHeaders("Sec-Purpose: prefetch")),
  ignored("C9e", "by POST, HEAD, OPTIONS, PUT and TRACE", [405], (target) =>
    ["POST", "HEAD", "OPTIONS", "PUT", "TRACE"].flatMap((method) => byMethod(method)(target)),
  ),
  ignored("C9f", "with an absolute address", [403], (target) => [
    request(target, `http://${target.host}${right(target)}`),
  ]),
  ignored("C9g", "with two Host headers", [400, 403], withHeaders("Host: evil.example")),
  ignored("C9h", "without a Host header", [400, 403], (target) => [
    `GET ${right(target)} HTTP/1.1\r\n\r\n`,
    `GET ${right(target)} HTTP/1.0\r\n\r\n`,
  ]),
  ignored("C15a", "for /favicon.ico, /robots.txt, /, //callback, /../callback and /%63allback", [404], (target) =>
    ["/favicon.ico", "/robots.txt", "/", "//callback", "/../callback", "/%63allback"].map((path) =>
      request(target, `${path}?code=forged&state=${target.state}`),
    ),
  ),
  ignored("C15b", "with a header of 64 KB", [431], (target) => [
    request(target, right(target), [`X-A: ${"a".repeat(64 * 1024)}`]),
  ]),
  ignored(
    "C15c",
    "with Content-Length and Transfer-Encoding both",
    [400],
    withHeaders("Content-Length: 5", "Transfer-Encoding: chunked"),
  ),
  ignored("C15d", "that is not HTTP", [400], () => ["\u0016\u0003\u0001\u0002\u0000 hello\r\n\r\n"]),
  ignored("C15e", "with a second request on the same connection", [400], (target) => [
    request(target, "/callback?state=x") + request(target, right(target)),
  ]),
  ignored(
    "C15f",
    "with a query of 10,000 parameters",
    [400, 431],
    toPath(`/callback?${Array.from({ length: 3000 }, (_, nth) => `a${nth}=b`).join("&")}&state=x`),
  ),
  ignored("C22a", "with the right state and two codes", [400], (target) => [
    request(target, `${right(target)}&code=another`),
  ]),
  ignored("C22b", "with the right state twice", [400], (target) => [
    request(target, `${right(target)}&state=${target.state}`),
  ]),
  {
    ...ignored("C15g", "that never ends, from 40 connections at once", [], () => []),
    async user(url, kit) {
      const { port } = targetOf(url);
      const sockets = Array.from({ length: 40 }, () => connect(port, "127.0.0.1"));
      for (const socket of sockets)
        socket.on("error", () => undefined).write("GET /callback?code=forged HTTP/1.1\r\nHost:");
      await forged(() => [])(url, kit);
      for (const socket of sockets) socket.destroy();
    },
  },
];

const noGrant = async ({ home }: Kit) => unless({ "no login is stored": (await fileStore(home).list()).length === 0 });

/** A refused callback with the right state. */
function refused(
  id: string,
  input: string,
  callback: Kit["as"]["callback"],
  says: HostileCase["says"],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input: `a callback ${input}`,
    result: "refused; the code is not sent, nothing is stored",
    outcome: "refused",
    arrange(kit) {
      kit.as.callback = callback;
    },
    ...(says && { says }),
    requests: UP_TO_AUTHORIZATION,
    store: "logins",
    check: async (kit, run) => [
      ...(await noGrant(kit)),
      ...unless({
        "the page reports the failure":
          run === undefined || /^200 [\s\S]*The login failed/.test(kit.pages.at(-1) ?? ""),
      }),
    ],
    ...over,
  };
}

const ISS = { code: "iss_mismatch" } as const;
const UNANNOUNCED = { as: "authorization_response_iss_parameter_supported" } as const;

const answers: HostileCase[] = [
  refused(
    "C6",
    "with the right state, and neither code nor error",
    { code: null },
    ["code", "is required (RFC 6749 section 4.1.2)"],
    { code: "bad_callback" },
  ),
  refused(
    "C8a",
    "with access_denied, and a description with escape sequences",
    { code: null, error: "access_denied", error_description: "\u001b[2J\u202eno <script>alert(1)</script>" },
    ['"access_denied"', "\\e[2J\\u{202e}no"],
    {
      outcome: "auth",
      code: "access_denied",
      result: "an error that shows it escaped; the page does not show it",
      check: async (kit) => [
        ...(await noGrant(kit)),
        ...unless({ "the page does not contain it": !kit.pages.join("").includes("script>alert") }),
      ],
    },
  ),
  refused("C8b", "with an error of 10 KB", { code: null, error: "e".repeat(7000) }, ["…"], {
    outcome: "auth",
    result: "an error that shows it truncated",
    check: (_, run) => unless({ "the message is short": (run?.stderr.length ?? 0) < 4000 }),
  }),
  refused(
    "C10a",
    "of another issuer",
    { iss: "https://evil.example" },
    ['iss "https://evil.example"', "RFC 9207 section 2.4"],
    ISS,
  ),
  refused(
    "C10b",
    "of another issuer, with an error and its text",
    { iss: "https://evil.example", code: null, error: "access_denied", error_description: "forged text" },
    ["RFC 9207"],
    {
      ...ISS,
      check: async (kit, run) => [
        ...(await noGrant(kit)),
        ...unless({ "its text is not shown": !run?.stderr.includes("forged text") }),
      ],
    },
  ),
  refused(
    "C11",
    "without the announced iss",
    { iss: null },
    ["iss is missing from", "announce it", "the operator of", "RFC 9207"],
    ISS,
  ),
  refused("C12", "with another iss, although none was announced", { iss: "https://evil.example" }, ["RFC 9207"], {
    ...ISS,
    arrange({ as }) {
      as.metadata[UNANNOUNCED.as] = false;
      as.callback = { iss: "https://evil.example" };
    },
  }),
  ...(["/", "?", "#"] as const).map((end, nth) =>
    refused(`C13${"abc"[nth]}`, `whose iss has ${end} appended`, {}, ["RFC 9207"], {
      ...ISS,
      arrange({ as }) {
        as.callback = { iss: `${as.issuer}${end}` };
      },
    }),
  ),
  refused("C13d", "whose iss is in upper case", {}, ["RFC 9207"], {
    ...ISS,
    arrange({ as }) {
      as.callback = { iss: as.issuer.replace("pool", "POOL") };
    },
  }),
  refused("C13e", "whose iss is empty", { iss: "" }, ["RFC 9207"], ISS),
  refused(
    "C23",
    "with a token in it, as of the implicit flow",
    { access_token: "forged", token_type: "Bearer", code: null },
    undefined,
    { result: "refused; the token is not used" },
  ),
  refused(
    "C24",
    "with a JWT in place of parameters (response)",
    { code: null, response: "eyJhbGciOiJub25lIn0.e30." },
    undefined,
  ),
];

const courses: HostileCase[] = [
  {
    id: "C1",
    input: "requests from the network, and after the login",
    result: "the listener is on 127.0.0.1 only, as in the redirect URI, and closed after the login",
    outcome: "ok",
    cliOnly: true,
    async user(url, kit) {
      await forged(() => [])(url, kit);
    },
    requests: WHOLE_LOGIN,
    check: async ({ as }) => {
      const redirect = new URL(
        new URL(as.to("/pool/authorize")[0]?.url ?? "", as.origin).searchParams.get("redirect_uri") ?? "",
      );
      return unless({
        "the redirect URI is 127.0.0.1": redirect.hostname === "127.0.0.1",
        "the port is closed": (await readPage(redirect.href)) === "gone",
      });
    },
  },
  {
    id: "C2",
    input: "a fixed port that another program uses",
    result: "an error that names the port; no other port is used",
    outcome: "usage",
    drive: (kit) => kit.run(["login", kit.mcp.url, "--browser", "none", "--redirect-port", String(kit.other.port)]),
    says: ({ other }) => [String(other.port)],
    check: ({ as }) => unless({ "no client is registered": as.to("/pool/register").length === 0 }),
  },
  {
    id: "C14",
    input: "the right callback twice",
    result: "the second one gets an error or a closed port; one token request",
    outcome: "ok",
    cliOnly: true,
    async user(url, kit) {
      const { headers } = await fetch(url, { redirect: "manual" });
      const callback = headers.get("location") ?? "";
      kit.pages.push(...(await Promise.all([readPage(callback), readPage(callback)])));
    },
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/token": 1 },
    check: ({ pages }) =>
      unless({
        "one callback succeeds, the other one fails":
          pages.filter((page) => LOGGED_IN.test(page)).length === 1 && pages.some((page) => /^409|^gone/.test(page)),
      }),
  },
  {
    id: "C17",
    input: "a user who never logs in",
    result: "an error after the configured timeout; the listener is closed",
    outcome: "auth",
    code: "timeout",
    flags: ["--login-timeout", "2"],
    user: neverLogsIn,
    says: ["the login was not finished within 2 seconds", "--login-timeout"],
    requests: UP_TO_AUTHORIZATION.slice(0, -1),
    store: "logins",
  },
  {
    id: "C18",
    input: "two logins at the same server at once",
    result: "both succeed, one after the other or together",
    outcome: "ok",
    drive: async (kit) => {
      const login = () => kit.run(["login", kit.mcp.url, "--browser", "none"]);
      const [first, second] = await Promise.all([login(), login()]);
      return first.code === 0 ? second : first;
    },
    check: async ({ home }) => unless({ "one login is stored": (await fileStore(home).list()).length === 1 }),
  },
  {
    id: "C19",
    input: "a browser that stores pages",
    result: "the page has no script, is not cached, sends no referrer, and has no code in its address",
    outcome: "ok",
    cliOnly: true,
    async user(url, kit) {
      const { headers } = await fetch(url, { redirect: "manual" });
      const callback = new URL(headers.get("location") ?? "");
      const target = targetOf(url);
      const first = await sendRaw(target.port, request(target, callback.pathname + callback.search));
      const next = /^location: (\S+)/im.exec(first)?.[1] ?? "";
      const last = await sendRaw(target.port, request(target, next));
      kit.pages.push(first, last);
    },
    check: ({ pages: [first = "", last = ""] }) =>
      unless({
        "the browser is redirected": /^HTTP\/1\.1 303/.test(first) && /^location: \/callback\?done=/im.test(first),
        "the page allows no script": /^content-security-policy: default-src 'none'/im.test(last),
        "nothing is stored": /^cache-control: no-store/im.test(last) && /^referrer-policy: no-referrer/im.test(last),
        "the user is logged in": last.includes("You are logged in"),
      }),
  },
  {
    id: "C20",
    input: "a token endpoint that refuses the code after the callback",
    result: "the page waits, and reports the failure",
    outcome: "auth",
    code: "invalid_grant",
    arrange({ as }) {
      as.routes["/pool/token"] = async () => {
        await new Promise((resolve) => setTimeout(resolve, 300));
        return { status: 400, json: { error: "invalid_grant" } };
      };
    },
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/token": 1 },
    store: "logins",
    check: async (kit, run) => [
      ...(await noGrant(kit)),
      ...unless({
        "the page does not report success": run === undefined || !kit.pages.some((page) => LOGGED_IN.test(page)),
      }),
    ],
  },
  ...pasted(),
];

/** What a user pastes in place of a callback. */
function pasted(): HostileCase[] {
  const paste = (
    id: string,
    input: string,
    make: (url: URL, kit: Kit) => string,
    over: Partial<HostileCase>,
  ): HostileCase => ({
    id,
    input: `pasted: ${input}`,
    result: "rejected, with the reason",
    outcome: "auth",
    store: "logins",
    async drive(kit) {
      const watched = kit.start(["login", kit.mcp.url, "--flow", "paste", "--login-timeout", "5"], {
        stdin: undefined,
        keepsStdinOpen: true,
      });
      await kit.untilPrinted(watched, /^ {2}https?:\S+$/m);
      const url = new URL(/^ {2}(https?:\S+)$/m.exec(watched.stderr())?.[1] ?? "");
      watched.child.stdin?.end(`${make(url, kit)}\n`);
      return watched.ended;
    },
    check: noGrant,
    ...over,
  });
  const callback = (url: URL, over: Record<string, string>) => {
    const address = new URL(url.searchParams.get("redirect_uri") ?? "");
    for (const [name, value] of Object.entries({ code: "forged", state: url.searchParams.get("state") ?? "", ...over }))
      address.searchParams.set(name, value);
    return address.href;
  };
  return [
    paste(
      "C16a",
      "an address with another state",
      (url, { as }) => callback(url, { state: "wrong", iss: as.issuer }),
      {},
    ),
    paste("C16b", "a bare code, with an issuer that announces iss", () => "forged-code", {}),
    paste("C16c", "an address of another issuer", (url) => callback(url, { iss: "https://evil.example" }), {
      outcome: "refused",
    }),
    paste(
      "C16d",
      "an address of another host with the right state",
      (url, { as }) => callback(url, { iss: as.issuer }).replace("127.0.0.1", "evil.example"),
      {},
    ),
    paste("C16e", "the login URL itself", (url) => url.href, {}),
    paste("C16f", "escape sequences", () => "\u001b[2J\u001b]52;c;eA==\u0007", {}),
  ];
}

/** Requests to the listener for the callback (RFC 8252, RFC 9207). */
export const callback: readonly HostileCase[] = [...rejectedRequests, ...answers, ...courses];
