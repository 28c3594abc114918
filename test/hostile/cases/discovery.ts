import { gzipSync } from "node:zlib";
import { ASKED, DESCRIBED, EXCHANGED, type HostileCase, SEARCHED, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";
import { endless, flood, rawBytes, rawJson, reset, silence } from "../kit/peer.js";

const PRM = "/.well-known/oauth-protected-resource/mcp";
const QUICK = { timeout: 8, retries: false } as const;

/** Names the right document, and something beside it. */
const challenge = (text: (right: string, kit: Kit) => string) => (kit: Kit) => {
  kit.mcp.challenge = text(`${kit.mcp.origin}${PRM}`, kit);
};

/** Names an address for the resource metadata that is refused before anything is sent there. */
function namedBadly(id: string, came: string, address: string, rule: string): HostileCase {
  return {
    id,
    came,
    done: "refused before a request to it",
    outcome: "refused",
    code: "bad_address",
    arrange: challenge(() => `Bearer resource_metadata="${address}"`),
    says: ({ mcp }) => ["resource_metadata", `the WWW-Authenticate of ${mcp.url}`, rule],
    requests: ASKED,
  };
}

const challenges: HostileCase[] = [
  {
    id: "D1",
    came: "401 without WWW-Authenticate, and no resource metadata anywhere",
    done: "both well-known addresses are requested, then an error that names --legacy-discovery; no issuer is guessed",
    outcome: "refused",
    code: "no_resource_metadata",
    arrange({ mcp }) {
      mcp.challenge = undefined;
      delete mcp.routes[PRM];
    },
    says: ["names no authorization server (RFC 9728)", "--legacy-discovery"],
    requests: SEARCHED,
  },
  {
    id: "D1b",
    came: "401 without WWW-Authenticate, and resource metadata at the well-known address",
    done: "the document is found there",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.challenge = undefined;
    },
    requests: EXCHANGED,
  },
  {
    id: "D2a",
    came: "a Basic challenge before the Bearer challenge, in one field",
    done: "both are parsed, and the Bearer challenge is used",
    outcome: "ok",
    arrange: challenge((right) => `Basic realm="a, b", Bearer realm="x" , resource_metadata = "${right}"`),
    requests: EXCHANGED,
  },
  {
    id: "D2b",
    came: "an address and a scope inside a quoted error_description",
    done: "parsed as text: no request to the address, the scope is not requested",
    outcome: "ok",
    arrange: challenge(
      (right, { elsewhere }) =>
        `Bearer error_description="a\\", resource_metadata=\\"${elsewhere.origin}/x\\", scope=\\"admin", resource_metadata="${right}"`,
    ),
    requests: EXCHANGED,
    check: ({ as }) => unless({ "no scope is asked for": !as.to("/pool/authorize")[0]?.url.includes("scope=") }),
  },
  {
    id: "D2c",
    came: "a WWW-Authenticate of 64 KB",
    done: "the response is refused: its head is too large",
    outcome: "unavailable",
    retries: false,
    arrange: challenge((right) => `Bearer realm="${"a".repeat(64 * 1024)}", resource_metadata="${right}"`),
    requests: ASKED,
  },
  {
    id: "D2d",
    came: "resource_metadata twice, the first address empty",
    done: "both are requested in order, and the second is used",
    outcome: "ok",
    arrange: challenge(
      (right, { mcp }) => `Bearer resource_metadata="${mcp.origin}/none", resource_metadata="${right}"`,
    ),
    requests: ["mcp GET /none", ...EXCHANGED],
  },
  {
    id: "D2e",
    came: "resource_metadata without quotes",
    done: "accepted",
    outcome: "ok",
    arrange: challenge((right) => `Bearer resource_metadata=${right}, error=invalid_token`),
    requests: EXCHANGED,
  },
  {
    id: "D2f",
    came: "a quote that never ends",
    done: "ignored; the well-known address is requested",
    outcome: "ok",
    arrange: challenge((right) => `Bearer resource_metadata="${right}`),
    requests: EXCHANGED,
  },
  {
    id: "D2g",
    came: "200 addresses in one challenge",
    done: "only the first ones are requested",
    outcome: "refused",
    code: "no_resource_metadata",
    arrange(kit) {
      const { mcp } = kit;
      delete mcp.routes[PRM];
      const names = Array.from({ length: 200 }, (_, nth) => `resource_metadata="${mcp.origin}/${nth}"`);
      mcp.challenge = `Bearer ${names.join(", ")}`;
    },
    check: ({ mcp, log }) =>
      unless({ "at most 20 requests are sent": log.filter(({ peer }) => peer === mcp.name).length <= 20 }),
  },
  {
    id: "D3",
    came: "resource_metadata on another origin",
    done: "refused before a request to it; the error names the flag that allows it",
    outcome: "refused",
    code: "bad_address",
    arrange: challenge((_, { elsewhere }) => `Bearer resource_metadata="${elsewhere.origin}${PRM}"`),
    says: ({ mcp, elsewhere }) => [
      `resource_metadata "${elsewhere.origin}${PRM}"`,
      `the WWW-Authenticate of ${mcp.url}`,
      "RFC 9728 section 7.3",
      "--allow-cross-origin-metadata",
    ],
    requests: ASKED,
  },
  {
    id: "D3b",
    came: "the right address and, in the same challenge, one on another origin",
    done: "refused: no part of such a challenge is used",
    outcome: "refused",
    code: "bad_address",
    arrange: challenge(
      (right, { elsewhere }) => `Bearer resource_metadata="${right}", resource_metadata="${elsewhere.origin}/x"`,
    ),
    requests: ASKED,
  },
  namedBadly("D4a", "resource_metadata with http: to another machine", "http://mcp.example/x", "OAuth 2.1 section 1.5"),
  namedBadly("D4b", "resource_metadata with ftp:", "ftp://127.0.0.1/x", "must be an https address"),
  namedBadly("D4c", "resource_metadata with file:", "file:///etc/passwd", "must be an https address"),
  namedBadly("D4d", "resource_metadata with data:", "data:application/json,{}", "must be an https address"),
  namedBadly("D17a", "resource_metadata that is relative", PRM, "must be an absolute URL"),
  namedBadly("D17b", "resource_metadata with a user name", "https://a@127.0.0.1/x", "user name or password"),
  namedBadly("D17c", "resource_metadata with a fragment", "https://127.0.0.1/x#y", "must not have a fragment"),
  namedBadly("D17d", "resource_metadata with a backslash", "https:\\\\\\\\127.0.0.1/x", "backslashes"),
  {
    id: "D18",
    came: "a challenge that asks for 10,000 characters of scopes",
    done: "refused: too many scopes",
    outcome: "refused",
    code: "bad_scope",
    arrange: challenge((right) => `Bearer resource_metadata="${right}", scope="${"s1 s2 ".repeat(1000)}"`),
    says: ["scope", "must not have more than 64 scopes"],
  },
];

const redirects: HostileCase[] = [
  ...([301, 302, 303, 307, 308] as const).map(
    (status): HostileCase => ({
      id: `D8-${status}`,
      came: `resource metadata that answers ${status} to another origin`,
      done: "not followed; the error names both origins",
      outcome: "refused",
      code: "redirect_refused",
      arrange({ mcp, elsewhere }) {
        mcp.routes[PRM] = { status, headers: { location: `${elsewhere.origin}/x` } };
      },
      says: ({ mcp, elsewhere }) => [mcp.origin, elsewhere.origin, "redirects off the origin are not followed"],
      requests: DESCRIBED,
    }),
  ),
  {
    id: "D8a",
    came: "resource metadata that redirects to itself",
    done: "refused after three redirects",
    outcome: "refused",
    code: "redirect_refused",
    arrange({ mcp }) {
      mcp.routes[PRM] = { status: 302, headers: { location: PRM } };
    },
    says: ["more than 3 redirects"],
    requests: DESCRIBED,
    times: { [`mcp GET ${PRM}`]: 4 },
  },
  {
    id: "D8b",
    came: "resource metadata that redirects once inside its origin",
    done: "followed",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.routes[PRM] = { status: 307, headers: { location: "/moved" } };
      mcp.routes["/moved"] = () => ({ json: mcp.metadata });
    },
    requests: ["mcp GET /moved", ...EXCHANGED],
  },
  {
    id: "D8c",
    came: "a redirect with a user name and password to the same host",
    done: "refused; the password is not shown",
    outcome: "refused",
    code: "redirect_refused",
    arrange({ mcp, canaries }) {
      const location = `${mcp.origin.replace("//", `//u:${canaries.get("code")}@`)}/x`;
      mcp.routes[PRM] = { status: 302, headers: { location } };
    },
    requests: DESCRIBED,
  },
  {
    id: "D8d",
    came: "a redirect to an invalid address with escape sequences",
    done: "refused; the error shows it escaped",
    outcome: "refused",
    code: "redirect_refused",
    arrange({ mcp }) {
      mcp.routes[PRM] = { status: 302, headers: { location: "http://[\u009b31m" } };
    },
    says: ["which is not an address"],
    requests: DESCRIBED,
  },
  {
    id: "D9",
    came: "server metadata that redirects to another origin",
    done: "not followed; no endpoint is guessed",
    outcome: "refused",
    code: "redirect_refused",
    arrange({ as, elsewhere }) {
      for (const path of [
        "/pool/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/pool",
        "/.well-known/openid-configuration/pool",
        "/pool/.well-known/openid-configuration",
      ]) {
        as.routes[path] = { status: 302, headers: { location: `${elsewhere.origin}/x` } };
      }
    },
    says: ["redirects off the origin are not followed"],
    check: ({ log }) =>
      unless({ "no endpoint is asked": log.every(({ path }) => !/authorize|token|register$/.test(path)) }),
  },
  {
    id: "D19",
    came: "an MCP server that answers the first request with a redirect to another origin",
    done: "not followed; the well-known address of the server is requested",
    outcome: "ok",
    arrange({ mcp, elsewhere }) {
      mcp.routes["/mcp"] = { status: 307, headers: { location: `${elsewhere.origin}/mcp` } };
    },
    requests: EXCHANGED,
  },
];

/** An answer in place of the resource metadata. */
function inPlace(
  id: string,
  came: string,
  answer: (kit: Kit) => Kit["mcp"]["routes"][string],
  over: Partial<HostileCase> & Pick<HostileCase, "outcome" | "done">,
): HostileCase {
  return {
    id,
    came,
    arrange(kit) {
      kit.mcp.routes[PRM] = answer(kit);
    },
    requests: DESCRIBED,
    ...over,
  };
}

const REFUSED = { outcome: "refused", done: "refused" } as const;
const right = ({ mcp }: Kit) => JSON.stringify(mcp.metadata);

const faults: HostileCase[] = [
  inPlace("D11a", "resource metadata that answers 500", () => ({ status: 500 }), {
    outcome: "unavailable",
    code: "server_error",
    done: "retried, then an error; no fallback to the next discovery step",
    times: { [`mcp GET ${PRM}`]: 3 },
    says: ["HTTP 500"],
  }),
  inPlace(
    "D11b",
    "resource metadata that answers 429 with Retry-After: 86400",
    () => ({ status: 429, headers: { "retry-after": "86400" } }),
    {
      outcome: "unavailable",
      code: "rate_limited",
      done: "an error at once, with the waiting time",
      times: { [`mcp GET ${PRM}`]: 1 },
      says: ["86400 s"],
    },
  ),
  inPlace("D11c", "resource metadata whose connection is reset", () => reset, {
    outcome: "unavailable",
    code: "connection_reset",
    done: "retried, then an error",
    times: { [`mcp GET ${PRM}`]: 3 },
  }),
  inPlace("D12a", "silence in place of resource metadata", () => silence, {
    ...QUICK,
    outcome: "unavailable",
    code: "timeout",
    done: "an error after the configured timeout",
    says: ["no complete answer in 8 s"],
  }),
  inPlace("D12b", "silence, with the default timeout", () => silence, {
    retries: false,
    outcome: "unavailable",
    code: "timeout",
    done: "an error after 15 s",
    says: ["no complete answer in 15 s"],
    seconds: 25,
  }),
  inPlace(
    "D12c",
    "a body of 4 bytes a second",
    () => endless("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{", "    ", 1000),
    {
      ...QUICK,
      outcome: "unavailable",
      code: "timeout",
      done: "an error after the configured timeout",
    },
  ),
  inPlace(
    "D12f",
    "a body of 4 bytes a second, with the default timeout",
    () => endless("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{", "    ", 1000),
    {
      outcome: "unavailable",
      code: "timeout",
      done: "an error after 15 s, retries included",
      seconds: 25,
    },
  ),
  inPlace("D12d", "headers that never end", () => endless("HTTP/1.1 200 OK\r\n", "x-a: b\r\n", 50), {
    ...QUICK,
    outcome: "unavailable",
    done: "an error",
  }),
  inPlace(
    "D12e",
    "informational responses (103) without end",
    () => endless("", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n", 20),
    {
      ...QUICK,
      outcome: "unavailable",
      done: "an error after the configured timeout",
    },
  ),
  inPlace("D13a", "a body of 600 MB", () => flood("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n", 600e6), {
    ...REFUSED,
    code: "body_too_large",
    done: "read up to 256 KB, then refused",
    says: ["larger than 262144 bytes"],
  }),
  inPlace(
    "D13b",
    "a Content-Length of 600 MB",
    () => flood("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 600000000\r\n\r\n", 600e6),
    {
      ...REFUSED,
      code: "body_too_large",
      done: "refused before the body is read",
    },
  ),
  inPlace(
    "D13c",
    "a Content-Length longer than the body",
    (kit) => rawBytes(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n${right(kit)}`),
    {
      retries: false,
      outcome: "unavailable",
      done: "treated as a broken connection; the body is not used",
    },
  ),
  inPlace(
    "D13d",
    "a Content-Length shorter than the body",
    (kit) => rawBytes(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n${right(kit)}`),
    {
      retries: false,
      outcome: "refused",
      code: "bad_json",
      done: "refused: the truncated body is not JSON",
    },
  ),
  inPlace(
    "D13e",
    "Content-Length and Transfer-Encoding both",
    (kit) =>
      rawBytes(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n${right(kit).length.toString(16)}\r\n${right(kit)}\r\n0\r\n\r\n`,
      ),
    {
      retries: false,
      outcome: "unavailable",
      done: "treated as a broken connection",
    },
  ),
  inPlace("D13f", "a response that is not HTTP", () => rawBytes("\u001b[31mhello\r\n\r\n"), {
    retries: false,
    outcome: "unavailable",
    done: "treated as a broken connection; the body is not shown",
  }),
  inPlace("D14a", "a gzip bomb of 400 MB in 0.4 MB", () => rawJson(bomb(), 200, { "content-encoding": "gzip" }), {
    ...REFUSED,
    code: "body_too_large",
    done: "decompressed up to 256 KB, then refused",
  }),
  inPlace(
    "D14b",
    "resource metadata that is compressed unasked",
    (kit) => rawJson(gzipSync(right(kit)), 200, { "content-encoding": "gzip" }),
    {
      ...REFUSED,
      code: "bad_content_type",
      says: ["compressed although that was not asked for"],
    },
  ),
  inPlace("D14c", "gzip three times over", () => rawJson("x", 200, { "content-encoding": "gzip, gzip, gzip" }), {
    ...REFUSED,
    code: "bad_content_type",
    done: "refused without decompression",
  }),
  inPlace(
    "D14e",
    "gzip fifty times over",
    () => rawJson("x", 200, { "content-encoding": Array(50).fill("gzip").join(", ") }),
    {
      retries: false,
      outcome: "unavailable",
      done: "an error without decompression",
    },
  ),
  inPlace(
    "D14d",
    "an unknown content encoding",
    (kit) => rawJson(right(kit), 200, { "content-encoding": "zstd-evil" }),
    {
      ...REFUSED,
      code: "bad_content_type",
    },
  ),
  inPlace(
    "D15a",
    "a login page with status 200",
    () => ({ headers: { "content-type": "text/html" }, text: "<html>" }),
    {
      ...REFUSED,
      code: "bad_content_type",
      says: ["text/html, not application/json", "a proxy or a login page may have answered instead"],
    },
  ),
  inPlace(
    "D15b",
    "the right JSON as text/plain",
    (kit) => ({ headers: { "content-type": "text/plain" }, text: right(kit) }),
    {
      ...REFUSED,
      code: "bad_content_type",
    },
  ),
  inPlace("D15c", "the right JSON without a content type", (kit) => ({ text: right(kit) }), {
    ...REFUSED,
    code: "bad_content_type",
  }),
  inPlace("D15d", "UTF-16", (kit) => rawJson(Buffer.from(`\ufeff${right(kit)}`, "utf16le")), {
    retries: false,
    ...REFUSED,
    code: "bad_json",
  }),
  inPlace("D15e", "invalid UTF-8", () => rawJson(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])), {
    retries: false,
    ...REFUSED,
    code: "bad_json",
    says: ["not UTF-8"],
  }),
  inPlace("D15f", "overlong UTF-8 for a slash", () => rawJson(Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x7d])), {
    retries: false,
    ...REFUSED,
    code: "bad_json",
  }),
  inPlace("D20a", "a JSON array in place of an object", () => ({ json: [] }), { ...REFUSED, code: "bad_envelope" }),
  inPlace("D20b", "JSON null", () => rawJson("null"), { ...REFUSED, code: "bad_envelope" }),
  inPlace("D20c", "an empty response", () => rawJson(""), { retries: false, ...REFUSED, code: "bad_json" }),
  inPlace("D20d", "204 without content", () => ({ status: 204 }), { ...REFUSED, code: "bad_content_type" }),
  {
    id: "D21",
    came: "an MCP server that answers with an endless event stream",
    done: "only the head is read; the well-known address is requested",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.routes["/mcp"] = endless("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", "data: x\n\n", 10);
    },
    requests: EXCHANGED,
  },
  {
    id: "D22",
    came: "an MCP server that does not answer",
    done: "an error after the configured timeout",
    outcome: "unavailable",
    code: "timeout",
    ...QUICK,
    arrange({ mcp }) {
      mcp.routes["/mcp"] = silence;
    },
    requests: ASKED,
  },
  {
    id: "D23",
    came: "a cookie with the challenge, and with the metadata",
    done: "neither stored nor sent back",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.routes[PRM] = () => ({ headers: { "set-cookie": "a=b; Path=/" }, json: mcp.metadata });
      mcp.routes["/mcp"] = () => ({
        status: 401,
        headers: { "set-cookie": "a=b; Path=/", "www-authenticate": String(mcp.challenge) },
      });
    },
    requests: EXCHANGED,
    check: ({ log }) => unless({ "no cookie is sent": log.every(({ headers }) => headers.cookie === undefined) }),
  },
];

/** 400 members of 1 MB each: unpacked one after the other, they are 400 MB. */
function bomb(): Buffer {
  return Buffer.concat(Array<Buffer>(400).fill(gzipSync(Buffer.alloc(1e6, 0x20))));
}

/** Challenges, redirects and transport of the documents that a login begins with. */
export const discovery: readonly HostileCase[] = [...challenges, ...redirects, ...faults];
