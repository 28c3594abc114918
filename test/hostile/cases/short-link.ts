import { type HostileCase, unless, WHOLE_LOGIN } from "../case.js";
import { request, sendRaw, type Target, targetOf } from "../kit/forger.js";
import { logsIn, type User } from "../kit/user.js";

/** Requests to the listener, made from the link that the terminal shows. */
type Attempts = (target: Target, path: string) => readonly string[];

/** Opens the link once, as the user; then sends the attempts, and logs in. */
function opened(attempts: Attempts): User {
  return async (link, kit) => {
    const response = await fetch(link, { redirect: "manual" });
    const login = new URL(response.headers.get("location") ?? "");
    const target = targetOf(login);
    for (const bytes of attempts(target, link.pathname)) kit.pages.push(await sendRaw(target.port, bytes));
    await logsIn(login, kit);
  };
}

function link(
  id: string,
  input: string,
  statuses: readonly number[],
  attempts: Attempts,
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input: `a request to the short link of a login ${input}`,
    result: "rejected without the address of the login page; the login continues",
    outcome: "ok",
    cliOnly: true,
    command: ({ mcp }) => ["login", mcp.url, "--browser", "true"],
    environment: { AGENTAUTH_AGENT: "0", TERM: "dumb" },
    run: { isOnTerminal: true },
    user: opened(attempts),
    requests: WHOLE_LOGIN,
    times: { "as POST /pool/token": 1 },
    check: ({ as, pages }) => {
      const { searchParams } = new URL(as.to("/pool/authorize")[0]?.url ?? "", as.origin);
      const secrets = ["state", "code_challenge", "client_id"].map((name) => searchParams.get(name) ?? "");
      const answers = pages.slice(0, -1);
      const found = answers.map((page) => Number(/^HTTP\/1\.1 (\d{3})/.exec(page)?.[1] ?? 0));
      return unless({
        "the login page has its secrets": secrets.every((secret) => secret.length > 5),
        [`each is answered with ${statuses.join(" or ")}, not ${[...new Set(found)].join(", ")}`]: found.every(
          (status) => statuses.includes(status),
        ),
        "no answer has one of them, or leads anywhere": !answers.some(
          (page) => /^location:/im.test(page) || secrets.some((secret) => page.includes(secret)),
        ),
        "the user is logged in": /^200 [\s\S]*You are logged in/.test(pages.at(-1) ?? ""),
      });
    },
    ...over,
  };
}

const byHost = (host: (target: Target) => string) => (target: Target, path: string) =>
  request({ ...target, host: host(target) }, path);

/** Requests to the short link that a terminal shows in place of the address of the login page. */
export const shortLink: readonly HostileCase[] = [
  link(
    "C31a",
    "with a part of the path, a longer one, in another case, encoded, and with dots",
    [404],
    (target, path) =>
      [
        path.slice(0, -1),
        `${path}A`,
        `${path}/`,
        `/${path}`,
        `/..${path}`,
        path.replace(/[a-z]/gi, (one) => (one === one.toLowerCase() ? one.toUpperCase() : one.toLowerCase())),
        `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`,
        `${path}%00`,
      ].map((changed) => request(target, changed)),
  ),
  link("C31b", "with a path of 15,000 characters, and one of 64 KB", [404, 431], (target, path) =>
    [15_000, 64 * 1024].map((length) => request(target, path.padEnd(length, "A"))),
  ),
  link("C31c", "by another host's name (DNS rebinding)", [403], (target, path) =>
    [
      byHost(({ port }) => `evil.example:${port}`),
      byHost(({ port }) => `localhost:${port}`),
      byHost(() => "127.0.0.1"),
    ].map((send) => send(target, path)),
  ),
  link("C31d", "by POST, HEAD, OPTIONS, PUT and TRACE", [405], (target, path) =>
    ["POST", "HEAD", "OPTIONS", "PUT", "TRACE"].map((method) => request(target, path, ["Content-Length: 0"], method)),
  ),
  link("C31e", "from a web page, for an image, and for a prefetch", [403], (target, path) =>
    ["Origin: https://evil.example", "Sec-Fetch-Dest: image", "Sec-Purpose: prefetch"].map((header) =>
      request(target, path, [header]),
    ),
  ),
  link(
    "C31f",
    "by 60 guesses, and then with the right path",
    [404],
    (target, path) => [
      ...Array.from({ length: 60 }, (_, nth) => request(target, `/${`${nth}`.padStart(12, "A")}`)),
      request(target, path),
    ],
    {
      result: "the link stops working after 50, which is reported with the long address; the login continues",
      says: ["requests for other paths were rejected, so the link no longer works", "code_challenge="],
    },
  ),
  {
    ...link("C31g", "once the callback is there", [409, 0], () => []),
    result: "rejected without the address of the login page; one token request",
    async user(address, kit) {
      await opened(() => [])(address, kit);
      const target = { host: address.host, port: Number(address.port), state: "" };
      kit.pages.unshift(await sendRaw(target.port, request(target, address.pathname)));
    },
  },
];
