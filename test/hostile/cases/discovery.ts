import { gzipSync } from "node:zlib";
import { endless, flood, rawBytes, rawJson, reset, silence } from "../../helpers/peer.js";
import {
  type HostileCase,
  ORIGIN_METADATA,
  UP_TO_CHALLENGE,
  UP_TO_RESOURCE,
  unless,
  WHOLE_LOGIN,
  WITHOUT_RESOURCE,
} from "../case.js";
import type { Kit } from "../kit/kit.js";

const PRM = "/.well-known/oauth-protected-resource/mcp";
/** They may say that the server has another address. */
const OWN_METADATA = [`mcp GET ${PRM}`, "mcp GET /.well-known/oauth-protected-resource"];
const QUICK = { timeout: 4, retries: false } as const;

/** A challenge with the right document and further parameters. */
const challenge = (text: (right: string, kit: Kit) => string) => (kit: Kit) => {
  kit.mcp.challenge = text(`${kit.mcp.origin}${PRM}`, kit);
};

/** A challenge with a refused address of the resource metadata. */
function refusedAddress(id: string, input: string, address: string, rule: string): HostileCase {
  return {
    id,
    input,
    result: "refused before a request to it",
    outcome: "refused",
    code: "bad_address",
    arrange: challenge(() => `Bearer resource_metadata="${address}"`),
    says: ({ mcp }) => ["resource_metadata", `the WWW-Authenticate of ${mcp.url}`, rule],
    requests: UP_TO_CHALLENGE,
  };
}

/** Makes the MCP server answer requests without a token, and name no issuer. */
function answerWithoutToken({ mcp }: Kit, times = Number.POSITIVE_INFINITY): void {
  const protectedRoute = mcp.refusal();
  delete mcp.routes[PRM];
  mcp.routes["/mcp"] = (_request, nth) =>
    nth <= times ? { json: { jsonrpc: "2.0", id: 1, result: { tools: [] } } } : protectedRoute;
}

/** Whether the MCP server got neither a token nor a secret. */
const gotNoSecret = ({ mcp, canaries }: Kit) =>
  unless({
    "no request has credentials": mcp.to("/mcp").every(({ headers }) => headers.authorization === undefined),
    "no request has the client secret": mcp
      .to("/mcp")
      .every(({ body }) => !body.includes(canaries.get("client-secret"))),
  });

const withoutLogin: HostileCase[] = [
  {
    id: "D25a",
    input: "200 to the request without a token, to a login with a client secret",
    result: "no login starts, and no secret is sent",
    outcome: "ok",
    arrange: (kit) => answerWithoutToken(kit),
    flags: ["--client-id", "mine"],
    environment: ({ canaries }) => ({ AGENTAUTH_CLIENT_SECRET: canaries.get("client-secret") }),
    says: ["requires no login"],
    requests: WITHOUT_RESOURCE,
    check: gotNoSecret,
    cliOnly: true,
  },
  {
    id: "D25b",
    input: "200 to the first request without a token, then 401",
    result: "a login is required; nothing but requests without a token is sent",
    outcome: "auth",
    code: "login_required",
    arrange: (kit) => answerWithoutToken(kit, 1),
    command: ({ mcp }) => ["mcp", "tools", mcp.url],
    requests: WITHOUT_RESOURCE,
    check: gotNoSecret,
    cliOnly: true,
  },
  {
    id: "D25c",
    input: "a page with status 200 to the request without a token",
    result: "not a server without a login",
    outcome: "refused",
    code: "no_resource_metadata",
    arrange(kit) {
      answerWithoutToken(kit);
      kit.mcp.routes["/mcp"] = { status: 200, headers: { "content-type": "text/html" }, text: "<html>" };
    },
    requests: WITHOUT_RESOURCE,
    says: ["check the address: it answered a request without a token with HTTP 200"],
  },
];

const challenges: HostileCase[] = [
  {
    id: "D1",
    input: "401 without WWW-Authenticate, and no resource metadata anywhere",
    result:
      "both well-known addresses are requested, then an error that names --legacy-discovery; no issuer is guessed, and metadata of the origin are read only to name every flag",
    outcome: "refused",
    code: "no_resource_metadata",
    arrange({ mcp }) {
      mcp.challenge = undefined;
      delete mcp.routes[PRM];
    },
    says: ["names no authorization server (RFC 9728)", "--legacy-discovery"],
    requests: [...WITHOUT_RESOURCE, ...ORIGIN_METADATA],
  },
  {
    id: "D1b",
    input: "401 without WWW-Authenticate, and resource metadata at the well-known address",
    result: "the document is found there",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.challenge = undefined;
    },
    requests: WHOLE_LOGIN,
  },
  {
    id: "D2a",
    input: "a Basic challenge before the Bearer challenge, in one field",
    result: "both are parsed, and the Bearer challenge is used",
    outcome: "ok",
    arrange: challenge((right) => `Basic realm="a, b", Bearer realm="x" , resource_metadata = "${right}"`),
    requests: WHOLE_LOGIN,
  },
  {
    id: "D2b",
    input: "an address and a scope inside a quoted error_description",
    result: "parsed as text: no request to the address, the scope is not requested",
    outcome: "ok",
    arrange: challenge(
      (right, { elsewhere }) =>
        `Bearer error_description="a\\", resource_metadata=\\"${elsewhere.origin}/x\\", scope=\\"admin", resource_metadata="${right}"`,
    ),
    requests: WHOLE_LOGIN,
    check: ({ as }) => unless({ "no scope is requested": !as.to("/pool/authorize")[0]?.url.includes("scope=") }),
  },
  {
    id: "D2c",
    input: "a WWW-Authenticate of 64 KB",
    result: "the response is refused: its head is too large",
    outcome: "unavailable",
    retries: false,
    arrange: challenge((right) => `Bearer realm="${"a".repeat(64 * 1024)}", resource_metadata="${right}"`),
    requests: UP_TO_CHALLENGE,
  },
  {
    id: "D2d",
    input: "resource_metadata twice, the first address empty",
    result: "both are requested in order, and the second is used",
    outcome: "ok",
    arrange: challenge(
      (right, { mcp }) => `Bearer resource_metadata="${mcp.origin}/none", resource_metadata="${right}"`,
    ),
    requests: ["mcp GET /none", ...WHOLE_LOGIN],
  },
  {
    id: "D2e",
    input: "resource_metadata without quotes",
    result: "accepted",
    outcome: "ok",
    arrange: challenge((right) => `Bearer resource_metadata=${right}, error=invalid_token`),
    requests: WHOLE_LOGIN,
  },
  {
    id: "D2f",
    input: "a quote that never ends",
    result: "ignored; the well-known address is requested",
    outcome: "ok",
    arrange: challenge((right) => `Bearer resource_metadata="${right}`),
    requests: WHOLE_LOGIN,
  },
  {
    id: "D2g",
    input: "200 addresses in one challenge",
    result: "only the first ones are requested",
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
    input: "resource_metadata on another origin",
    result: "refused before a request to it; the error names the flag that allows it",
    outcome: "refused",
    code: "bad_address",
    arrange: challenge((_, { elsewhere }) => `Bearer resource_metadata="${elsewhere.origin}${PRM}"`),
    says: ({ mcp, elsewhere }) => [
      `resource_metadata "${elsewhere.origin}${PRM}"`,
      `the WWW-Authenticate of ${mcp.url}`,
      "RFC 9728 section 7.3",
      "--allow-cross-origin-metadata",
    ],
    requests: [...UP_TO_CHALLENGE, ...OWN_METADATA],
  },
  {
    id: "D3b",
    input: "the right address and, in the same challenge, one on another origin",
    result: "refused: no part of such a challenge is used",
    outcome: "refused",
    code: "bad_address",
    arrange: challenge(
      (right, { elsewhere }) => `Bearer resource_metadata="${right}", resource_metadata="${elsewhere.origin}/x"`,
    ),
    requests: [...UP_TO_CHALLENGE, ...OWN_METADATA],
  },
  refusedAddress(
    "D4a",
    "resource_metadata with http: to another machine",
    "http://mcp.example/x",
    "OAuth 2.1 section 1.5",
  ),
  refusedAddress("D4b", "resource_metadata with ftp:", "ftp://127.0.0.1/x", "must be an https address"),
  refusedAddress("D4c", "resource_metadata with file:", "file:///etc/passwd", "must be an https address"),
  refusedAddress("D4d", "resource_metadata with data:", "data:application/json,{}", "must be an https address"),
  {
    id: "D17a",
    input: "resource_metadata that is a path",
    result: "read at the origin of the server",
    outcome: "ok",
    arrange: challenge(() => `Bearer resource_metadata="${PRM}"`),
    requests: WHOLE_LOGIN,
  },
  refusedAddress("D17e", "resource_metadata that is a host and a path", "//mcp.example/x", "OAuth 2.1 section 1.5"),
  refusedAddress("D17b", "resource_metadata with a user name", "https://a@127.0.0.1/x", "user name or password"),
  refusedAddress("D17c", "resource_metadata with a fragment", "https://127.0.0.1/x#y", "must not have a fragment"),
  refusedAddress("D17d", "resource_metadata with a backslash", "https:\\\\\\\\127.0.0.1/x", "backslashes"),
  {
    id: "D18",
    input: "a challenge that asks for 10,000 characters of scopes",
    result: "refused: too many scopes",
    outcome: "refused",
    code: "bad_scope",
    arrange: challenge((right) => `Bearer resource_metadata="${right}", scope="${"s1 s2 ".repeat(1000)}"`),
    says: ["scope", "must not have more than 256 scopes"],
  },
];

const redirects: HostileCase[] = [
  ...([301, 302, 303, 307, 308] as const).map(
    (status): HostileCase => ({
      id: `D8-${status}`,
      input: `resource metadata that answers ${status} to another origin`,
      result: "not followed; the error names both origins",
      outcome: "refused",
      code: "redirect_refused",
      arrange({ mcp, elsewhere }) {
        mcp.routes[PRM] = { status, headers: { location: `${elsewhere.origin}/x` } };
      },
      says: ({ mcp, elsewhere }) => [
        mcp.origin,
        elsewhere.origin,
        "redirects off the origin are not followed",
        "the server's owner must publish the metadata at this address itself",
      ],
      requests: UP_TO_RESOURCE,
    }),
  ),
  {
    id: "D8a",
    input: "resource metadata that redirects to itself",
    result: "refused after three redirects",
    outcome: "refused",
    code: "redirect_refused",
    arrange({ mcp }) {
      mcp.routes[PRM] = { status: 302, headers: { location: PRM } };
    },
    says: ["more than 3 redirects"],
    requests: UP_TO_RESOURCE,
    times: { [`mcp GET ${PRM}`]: 4 },
  },
  {
    id: "D8b",
    input: "resource metadata that redirects once inside its origin",
    result: "followed",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.routes[PRM] = { status: 307, headers: { location: "/moved" } };
      mcp.routes["/moved"] = () => ({ json: mcp.metadata });
    },
    requests: ["mcp GET /moved", ...WHOLE_LOGIN],
  },
  {
    id: "D8c",
    input: "a redirect with a user name and password to the same host",
    result: "refused; the password is not shown",
    outcome: "refused",
    code: "redirect_refused",
    arrange({ mcp, canaries }) {
      const location = `${mcp.origin.replace("//", `//u:${canaries.get("code")}@`)}/x`;
      mcp.routes[PRM] = { status: 302, headers: { location } };
    },
    requests: UP_TO_RESOURCE,
  },
  {
    id: "D8d",
    input: "a redirect to an invalid address with escape sequences",
    result: "refused; the error shows it escaped",
    outcome: "refused",
    code: "redirect_refused",
    arrange({ mcp }) {
      mcp.routes[PRM] = { status: 302, headers: { location: "http://[\u009b31m" } };
    },
    says: ["which is not an address"],
    requests: UP_TO_RESOURCE,
  },
  {
    id: "D9",
    input: "server metadata that redirects to another origin",
    result: "not followed; no endpoint is guessed",
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
      unless({ "no endpoint is requested": log.every(({ path }) => !/authorize|token|register$/.test(path)) }),
  },
  {
    id: "D19",
    input: "an MCP server that answers the first request with a redirect to another origin",
    result: "not followed; the well-known address of the server is requested",
    outcome: "ok",
    arrange({ mcp, elsewhere }) {
      mcp.routes["/mcp"] = { status: 307, headers: { location: `${elsewhere.origin}/mcp` } };
    },
    requests: WHOLE_LOGIN,
  },
];

/** A reply in place of the resource metadata. */
function insteadOfMetadata(
  id: string,
  input: string,
  answer: (kit: Kit) => Kit["mcp"]["routes"][string],
  over: Partial<HostileCase> & Pick<HostileCase, "outcome" | "result">,
): HostileCase {
  return {
    id,
    input,
    arrange(kit) {
      kit.mcp.routes[PRM] = answer(kit);
    },
    requests: UP_TO_RESOURCE,
    ...over,
  };
}

const REFUSED = { outcome: "refused", result: "refused" } as const;
const right = ({ mcp }: Kit) => JSON.stringify(mcp.metadata);

const faults: HostileCase[] = [
  insteadOfMetadata("D11a", "resource metadata that answers 500", () => ({ status: 500 }), {
    outcome: "unavailable",
    code: "server_error",
    result: "retried, then an error; no fallback to the next discovery step",
    times: { [`mcp GET ${PRM}`]: 3 },
    says: ["HTTP 500"],
    hurry: 1,
  }),
  insteadOfMetadata(
    "D11b",
    "resource metadata that answers 429 with Retry-After: 86400",
    () => ({ status: 429, headers: { "retry-after": "86400" } }),
    {
      outcome: "unavailable",
      code: "rate_limited",
      result: "an error at once, with the waiting time",
      times: { [`mcp GET ${PRM}`]: 1 },
      says: ["86400 s"],
    },
  ),
  insteadOfMetadata("D11c", "resource metadata whose connection is reset", () => reset, {
    outcome: "unavailable",
    code: "connection_reset",
    result: "retried, then an error",
    times: { [`mcp GET ${PRM}`]: 3 },
    hurry: 1,
  }),
  insteadOfMetadata("D12a", "silence in place of resource metadata", () => silence, {
    ...QUICK,
    outcome: "unavailable",
    code: "timeout",
    result: "an error after the configured timeout",
    says: ["no complete response in 4 s"],
  }),
  insteadOfMetadata("D12b", "silence, with the default timeout", () => silence, {
    retries: false,
    hurry: 5,
    outcome: "unavailable",
    code: "timeout",
    result: "an error after 15 s",
    says: ["no complete response in 15 s"],
    seconds: 25,
  }),
  insteadOfMetadata(
    "D12c",
    "a body of 4 bytes a second",
    () => endless("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{", "    ", 1000),
    {
      ...QUICK,
      outcome: "unavailable",
      code: "timeout",
      result: "an error after the configured timeout",
    },
  ),
  insteadOfMetadata(
    "D12f",
    "a body of 4 bytes a second, with the default timeout",
    () => endless("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{", "    ", 1000),
    {
      hurry: 5,
      outcome: "unavailable",
      code: "timeout",
      result: "an error after 15 s, retries included",
      seconds: 25,
    },
  ),
  insteadOfMetadata("D12d", "headers that never end", () => endless("HTTP/1.1 200 OK\r\n", "x-a: b\r\n", 50), {
    ...QUICK,
    outcome: "unavailable",
    result: "an error",
  }),
  insteadOfMetadata(
    "D12e",
    "informational responses (103) without end",
    () => endless("", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n", 20),
    {
      ...QUICK,
      outcome: "unavailable",
      result: "an error after the configured timeout",
    },
  ),
  insteadOfMetadata(
    "D13a",
    "a body of 600 MB",
    () => flood("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n", 600e6),
    {
      ...REFUSED,
      code: "body_too_large",
      result: "read up to 256 KB, then refused",
      says: ["larger than 262144 bytes"],
    },
  ),
  insteadOfMetadata(
    "D13b",
    "a Content-Length of 600 MB",
    () => flood("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 600000000\r\n\r\n", 600e6),
    {
      ...REFUSED,
      code: "body_too_large",
      result: "refused before the body is read",
    },
  ),
  insteadOfMetadata(
    "D13c",
    "a Content-Length longer than the body",
    (kit) => rawBytes(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n${right(kit)}`),
    {
      retries: false,
      outcome: "unavailable",
      result: "treated as a broken connection; the body is not used",
    },
  ),
  insteadOfMetadata(
    "D13d",
    "a Content-Length shorter than the body",
    (kit) => rawBytes(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n${right(kit)}`),
    {
      retries: false,
      outcome: "refused",
      code: "bad_json",
      result: "refused: the truncated body is not JSON",
    },
  ),
  insteadOfMetadata(
    "D13e",
    "Content-Length and Transfer-Encoding both",
    (kit) =>
      rawBytes(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n${right(kit).length.toString(16)}\r\n${right(kit)}\r\n0\r\n\r\n`,
      ),
    {
      retries: false,
      outcome: "unavailable",
      result: "treated as a broken connection",
    },
  ),
  insteadOfMetadata("D13f", "a response that is not HTTP", () => rawBytes("\u001b[31mhello\r\n\r\n"), {
    retries: false,
    outcome: "unavailable",
    result: "treated as a broken connection; the body is not shown",
  }),
  insteadOfMetadata(
    "D14a",
    "a gzip bomb of 400 MB in 0.4 MB",
    () => rawJson(bomb(), 200, { "content-encoding": "gzip" }),
    {
      ...REFUSED,
      code: "body_too_large",
      result: "decompressed up to 256 KB, then refused",
    },
  ),
  insteadOfMetadata(
    "D14b",
    "resource metadata that is compressed unasked",
    (kit) => rawJson(gzipSync(right(kit)), 200, { "content-encoding": "gzip" }),
    {
      ...REFUSED,
      code: "bad_content_type",
      says: ["compressed although that was not asked for"],
    },
  ),
  insteadOfMetadata(
    "D14c",
    "gzip three times over",
    () => rawJson("x", 200, { "content-encoding": "gzip, gzip, gzip" }),
    {
      ...REFUSED,
      code: "bad_content_type",
      result: "refused without decompression",
    },
  ),
  insteadOfMetadata(
    "D14e",
    "gzip fifty times over",
    () => rawJson("x", 200, { "content-encoding": Array(50).fill("gzip").join(", ") }),
    {
      retries: false,
      outcome: "unavailable",
      // Node 20.19 accepts any number of codings.
      inLibrary: ["unavailable", "refused"],
      result: "an error without decompression",
    },
  ),
  insteadOfMetadata(
    "D14d",
    "an unknown content encoding",
    (kit) => rawJson(right(kit), 200, { "content-encoding": "zstd-evil" }),
    {
      ...REFUSED,
      code: "bad_content_type",
    },
  ),
  insteadOfMetadata(
    "D15a",
    "a login page with status 200",
    () => ({ headers: { "content-type": "text/html" }, text: "<html>" }),
    {
      ...REFUSED,
      code: "bad_content_type",
      says: ["text/html, not application/json", "a proxy or a login page may have answered instead"],
    },
  ),
  insteadOfMetadata(
    "D15b",
    "the right JSON as text/plain",
    (kit) => ({ headers: { "content-type": "text/plain" }, text: right(kit) }),
    {
      ...REFUSED,
      code: "bad_content_type",
      says: ["text/plain, not application/json", "the server's owner must send it as application/json"],
    },
  ),
  insteadOfMetadata("D15c", "the right JSON without a content type", (kit) => ({ text: right(kit) }), {
    ...REFUSED,
    code: "bad_content_type",
  }),
  insteadOfMetadata("D15d", "UTF-16", (kit) => rawJson(Buffer.from(`\ufeff${right(kit)}`, "utf16le")), {
    retries: false,
    ...REFUSED,
    code: "bad_json",
  }),
  insteadOfMetadata("D15e", "invalid UTF-8", () => rawJson(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])), {
    retries: false,
    ...REFUSED,
    code: "bad_json",
    says: ["not UTF-8"],
  }),
  insteadOfMetadata(
    "D15f",
    "overlong UTF-8 for a slash",
    () => rawJson(Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x7d])),
    {
      retries: false,
      ...REFUSED,
      code: "bad_json",
    },
  ),
  insteadOfMetadata("D20a", "a JSON array in place of an object", () => ({ json: [] }), {
    ...REFUSED,
    code: "bad_envelope",
  }),
  insteadOfMetadata("D20b", "JSON null", () => rawJson("null"), { ...REFUSED, code: "bad_envelope" }),
  insteadOfMetadata("D20c", "an empty response", () => rawJson(""), { retries: false, ...REFUSED, code: "bad_json" }),
  insteadOfMetadata("D20d", "204 without content", () => ({ status: 204 }), { ...REFUSED, code: "bad_content_type" }),
  {
    id: "D21",
    input: "an MCP server that answers with an endless event stream",
    result: "only the head is read; the well-known address is requested",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.routes["/mcp"] = endless("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", "data: x\n\n", 10);
    },
    requests: WHOLE_LOGIN,
  },
  {
    id: "D22",
    input: "an MCP server that does not answer",
    result: "an error after the configured timeout",
    outcome: "unavailable",
    code: "timeout",
    ...QUICK,
    arrange({ mcp }) {
      mcp.routes["/mcp"] = silence;
    },
    requests: UP_TO_CHALLENGE,
  },
  {
    id: "D23",
    input: "a cookie with the challenge, and with the metadata",
    result: "neither stored nor sent back",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.routes[PRM] = () => ({ headers: { "set-cookie": "a=b; Path=/" }, json: mcp.metadata });
      mcp.routes["/mcp"] = () => ({
        status: 401,
        headers: { "set-cookie": "a=b; Path=/", "www-authenticate": String(mcp.challenge) },
      });
    },
    requests: WHOLE_LOGIN,
    check: ({ log }) => unless({ "no cookie is sent": log.every(({ headers }) => headers.cookie === undefined) }),
  },
];

/** 400 gzip members of 1 MB each: 400 MB after decompression. */
function bomb(): Buffer {
  return Buffer.concat(Array<Buffer>(400).fill(gzipSync(Buffer.alloc(1e6, 0x20))));
}

/** Challenges, redirects and transport of discovery documents. */
export const discovery: readonly HostileCase[] = [...challenges, ...withoutLogin, ...redirects, ...faults];
