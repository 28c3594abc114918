import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { type Reply, type Route, reset } from "../../helpers/peer.js";
import { type HostileCase, UP_TO_ISSUER, unless } from "../case.js";
import { PLANTED } from "../checks.js";
import type { Kit } from "../kit/kit.js";

export const TOKEN = "/pool/token";
export const ASKED_ONCE = ["as POST /pool/token"];
export const ONCE = { "as POST /pool/token": 1 } as const;
export const TYPE = "urn:ietf:params:oauth:token-type:";
export const ACCESS = `${TYPE}access_token`;

/** A JWT with an invalid signature. */
export function jwt(claims: Record<string, unknown>, header: Record<string, unknown> = {}): string {
  const parts = [{ alg: "ES256", ...header }, claims].map((part) => Buffer.from(JSON.stringify(part)));
  return [...parts, Buffer.from("a signature")].map((part) => part.toString("base64url")).join(".");
}

/** A file with a secret. */
export function plant({ folder, canaries }: Kit, name: string, text: string): string {
  const path = join(folder, PLANTED, name);
  mkdirSync(join(folder, PLANTED), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
  canaries.add(name, text);
  return path;
}

/** Repeats the whole request in an error. */
export const echo =
  (error: string, status = 400): Route =>
  ({ body, headers }) => ({
    status,
    json: { error, error_description: `you sent ${decodeURIComponent(body)} with ${String(headers.authorization)}` },
  });
export const elsewhere = ({ elsewhere: { origin } }: Kit): Reply => ({
  status: 307,
  headers: { location: `${origin}/x` },
});

/** An exchange of a login's token at a hostile issuer. */
function exchanged(
  id: string,
  input: string,
  answer: Record<string, unknown> | ((kit: Kit) => Reply | Route),
  over: Partial<HostileCase> & { flags?: readonly string[] } = {},
): HostileCase {
  return {
    id,
    input: `an exchange answered with ${input}`,
    result: "refused; nothing is printed",
    outcome: "refused",
    requests: ASKED_ONCE,
    times: ONCE,
    store: "same",
    async arrange(kit) {
      await kit.saveLogin({}, { accessToken: new Secret(kit.canaries.get("access-token")) });
      const members = { access_token: jwt({ aud: "billing" }), issued_token_type: ACCESS, refresh_token: undefined };
      if (typeof answer === "function") kit.as.routes[TOKEN] = answer(kit);
      else kit.as.tokenAnswer = { ...members, ...answer };
    },
    ...over,
    command: ({ mcp }) => ["exchange", mcp.url, "--audience", "billing"],
  };
}

const exchanges: HostileCase[] = [
  exchanged("T12", "the requested token", {}, { outcome: "ok", result: "printed, and not stored" }),
  exchanged("T12a", "no issued_token_type", { issued_token_type: undefined }, { says: ["issued_token_type"] }),
  exchanged(
    "T12b",
    "another type than requested",
    { issued_token_type: `${TYPE}refresh_token` },
    {
      says: ["issued_token_type", "refresh_token", "RFC 8693 section 2.2.1"],
      code: "bad_token_answer",
    },
  ),
  exchanged(
    "T12c",
    "a token for another audience",
    { access_token: jwt({ aud: "https://evil.example" }) },
    {
      says: ["aud of the token", "https://evil.example"],
      code: "bad_token_answer",
    },
  ),
  exchanged("T12d", "an access token of the type N_A", { token_type: "N_A" }, { says: ["token_type", "N_A"] }),
  exchanged(
    "T12e",
    "a type with escape sequences",
    { issued_token_type: "\u001b[2J\u202e" },
    {
      says: ["issued_token_type", "\\e[2J"],
    },
  ),
  exchanged("T12f", "a token with a line break", { access_token: "canary\r\nX-Evil: 1" }, { says: ["(not shown)"] }),
  exchanged("T12g", "a redirect to another origin", elsewhere, {
    code: "redirect_refused",
    result: "not followed: the token is sent to one address only",
  }),
  exchanged("T12h", "an error that repeats the token and the client's secret", () => echo("invalid_target"), {
    outcome: "remote",
    code: "invalid_target",
    result: "shown with both masked, and with a hint",
    says: ["********", "audience or a resource"],
  }),
  exchanged("T12i", "a broken connection", () => reset, {
    outcome: "unavailable",
    result: "an error; not sent twice",
  }),
];

export const CLIENT = ["--client-id", "machine"];
const BY_SECRET = ["--grant", "client-credentials", ...CLIENT];
export const WITHOUT_RESOURCE = [...UP_TO_ISSUER, ...ASKED_ONCE];

/** A machine grant. */
export function machine(
  id: string,
  input: string,
  arrange: (kit: Kit) => unknown,
  over: Partial<HostileCase> & Pick<HostileCase, "outcome" | "result">,
): HostileCase {
  return {
    id,
    input,
    arrange,
    requests: WITHOUT_RESOURCE,
    times: ONCE,
    command: ({ mcp, as }) => ["token", mcp.url, ...BY_SECRET, "--issuer", as.issuer],
    store: over.outcome === "ok" ? "any" : "logins",
    ...over,
  };
}

export const answering = (reply: Reply | Route) => (kit: Kit) => {
  kit.as.routes[TOKEN] = reply;
};
const grantsOf = async ({ home }: Kit) => fileStore(home).list();

const services: HostileCase[] = [
  machine(
    "T17a",
    "a refresh token and an id token for a machine",
    ({ as }) => {
      as.tokenAnswer = {};
    },
    {
      outcome: "ok",
      result: "neither is stored, nor the client secret",
      prints: ["access-token"],
      check: async (kit) => {
        const [grant] = await grantsOf(kit);
        return unless({
          "no refresh token is stored": grant?.tokens.refreshToken === undefined,
          "no secret is stored": grant?.client.clientSecret === undefined,
        });
      },
    },
  ),
  machine(
    "T17b",
    "a token endpoint that redirects a machine to another origin",
    (kit) => {
      kit.as.routes[TOKEN] = elsewhere(kit);
    },
    {
      outcome: "refused",
      code: "redirect_refused",
      result: "not followed: the secret is sent to one address only",
    },
  ),
  machine("T17c", "invalid_client with the machine's secret repeated", answering(echo("invalid_client", 401)), {
    outcome: "auth",
    code: "invalid_client",
    result: "the other method is tried once; shown masked, with a hint; no other grant",
    times: { "as POST /pool/token": 2 },
    says: ["********", '--client-id "machine"', "AGENTAUTH_CLIENT_SECRET"],
  }),
  machine(
    "T17d",
    "an issuer that lists other client authentication methods",
    ({ as }) => {
      as.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt\u001b[2J"];
    },
    {
      outcome: "auth",
      code: "client_auth_unsupported",
      result: "no token request; the error names the list",
      requests: UP_TO_ISSUER,
      times: {},
      says: ["client_secret_basic", "private_key_jwt\\e[2J"],
    },
  ),
  machine(
    "T17e",
    "a token endpoint without TLS for a machine",
    ({ as }) => {
      as.metadata["token_endpoint"] = "http://as.example/token";
    },
    {
      outcome: "refused",
      code: "bad_address",
      result: "no token request",
      requests: [
        ...UP_TO_ISSUER,
        "as GET /.well-known/openid-configuration/pool?",
        "as GET /pool/.well-known/openid-configuration?",
      ],
      times: {},
    },
  ),
  machine(
    "T17f",
    "an issuer without logins for users",
    ({ as }) => {
      for (const name of ["authorization_endpoint", "code_challenge_methods_supported"]) delete as.metadata[name];
    },
    { outcome: "ok", result: "accepted for a machine grant", prints: ["access-token"] },
  ),
  machine("T17g", "an issuer other than the one of the machine's client", () => undefined, {
    outcome: "auth",
    code: "issuer_changed",
    result: "the secret is not sent there",
    requests: [
      ...WITHOUT_RESOURCE,
      "other GET /pool/.well-known/oauth-authorization-server",
      "other GET /.well-known/oauth-authorization-server/pool",
    ],
    store: "any",
    async drive(kit) {
      const args = ["token", kit.mcp.url, ...BY_SECRET];
      await kit.run([...args, "--issuer", kit.as.issuer]);
      kit.mcp.metadata["authorization_servers"] = [kit.other.issuer];
      kit.as.routes[TOKEN] = { status: 404, text: "" };
      return kit.run([...args, "--force-refresh"]);
    },
    prints: ["access-token"],
    times: { "as POST /pool/token": 2 },
  }),
];

/** Token exchange and machine grants with a secret. */
export const exchange: readonly HostileCase[] = [...exchanges, ...services];
