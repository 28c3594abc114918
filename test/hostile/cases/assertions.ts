import { chmodSync } from "node:fs";
import { dirname } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { type Reply, type Route, reset } from "../../helpers/peer.js";
import { type HostileCase, UP_TO_ISSUER } from "../case.js";
import { ID_TOKEN, type Kit } from "../kit/kit.js";
import {
  ACCESS,
  ASKED_ONCE,
  answering,
  CLIENT,
  echo,
  elsewhere,
  jwt,
  machine,
  ONCE,
  plant,
  TOKEN,
  TYPE,
  WITHOUT_RESOURCE,
} from "./exchange.js";

/** A workload without a client, whose assertion is not sent. */
function workload(
  id: string,
  input: string,
  {
    source,
    arrange = () => undefined,
    ...over
  }: Pick<HostileCase, "outcome" | "result"> &
    Partial<HostileCase> & { source(kit: Kit): string[]; arrange?: (kit: Kit) => void },
): HostileCase {
  return machine(id, input, arrange, {
    requests: UP_TO_ISSUER,
    times: {},
    command: (kit) => ["token", kit.mcp.url, "--grant", "jwt-bearer", "--issuer", kit.as.issuer, ...source(kit)],
    ...over,
  });
}

/** An assertion of a platform for the issuer of the case. */
const assertionFor = ({ as }: Kit) => jwt({ iss: "platform", sub: "ci", exp: 4e9, aud: as.issuer, jti: "1" });

/** A machine grant with an assertion file. */
const workloads: HostileCase[] = [
  machine("T18a", "an error that repeats the assertion", answering(echo("invalid_grant")), {
    outcome: "auth",
    code: "invalid_grant",
    result: "shown masked, with a hint; no second request, no other grant",
    says: ["********", "--assertion <source>"],
    command: (kit) => [
      ...["token", kit.mcp.url, "--grant", "jwt-bearer", ...CLIENT, "--issuer", kit.as.issuer],
      ...["--assertion", `file:${plant(kit, "assertion", assertionFor(kit))}`],
    ],
  }),
  machine("T18b", "an assertion file with other content", () => undefined, {
    outcome: "usage",
    result: "no token request, and the content is not shown",
    says: ["is no JWT"],
    requests: UP_TO_ISSUER,
    times: {},
    command: (kit) => [
      ...["token", kit.mcp.url, "--grant", "jwt-bearer", ...CLIENT, "--issuer", kit.as.issuer],
      ...["--assertion", `file:${plant(kit, "something", "canary-something-else")}`],
    ],
  }),
  workload("T18c", "a token service of a platform that redirects", {
    outcome: "refused",
    code: "redirect_refused",
    result: "not followed, and no token request",
    requests: [...UP_TO_ISSUER, "other GET /jwt"],
    arrange(kit) {
      kit.other.routes["/jwt"] = { status: 307, headers: { location: `${kit.elsewhere.origin}/jwt` } };
    },
    source: (kit) => ["--assertion", `url:${kit.other.origin}/jwt`],
  }),
  workload("T18g", "a metadata server that redirects", {
    outcome: "refused",
    code: "redirect_refused",
    result: "not followed, and no token request",
    requests: [...UP_TO_ISSUER, "other GET /computeMetadata/v1/instance/service-accounts/default/identity"],
    arrange(kit) {
      kit.other.routes["/computeMetadata/v1/instance/service-accounts/default/identity"] = elsewhere(kit);
    },
    environment: ({ other }) => ({ GCE_METADATA_HOST: new URL(other.origin).host }),
    source: () => ["--assertion", "gcp"],
  }),
  machine("T18h", "an issuer that breaks the connection when it has an assertion", answering(reset), {
    outcome: "unavailable",
    result: "an error; the assertion is not sent twice",
    command: (kit) => [
      ...["token", kit.mcp.url, "--grant", "jwt-bearer", "--issuer", kit.as.issuer],
      ...["--assertion", `file:${plant(kit, "assertion", assertionFor(kit))}`],
    ],
  }),
  machine("T18i", "an issuer that refuses an assertion that it took before", () => undefined, {
    outcome: "auth",
    code: "invalid_grant",
    result: "an error that says what the assertion must be; each command sends it once",
    says: ["used already", "--assertion <source>"],
    times: { "as POST /pool/token": 2 },
    store: "any",
    prints: ["access-token"],
    async drive(kit) {
      const source = `file:${plant(kit, "assertion", assertionFor(kit))}`;
      const args = ["token", kit.mcp.url, "--grant", "jwt-bearer", "--issuer", kit.as.issuer, "--assertion", source];
      await kit.run(args);
      kit.as.routes[TOKEN] = { status: 400, json: { error: "invalid_grant", error_description: "used already" } };
      return kit.run([...args, "--force-refresh"]);
    },
  }),
  workload("T18d", "an assertion that has expired", {
    outcome: "auth",
    code: "invalid_grant",
    result: "no token request; the error has the time",
    says: ["1970-01-01T00:00:01.000Z", "--assertion <source>"],
    source: (kit) => {
      const old = jwt({ iss: "platform", sub: "ci", exp: 1, aud: kit.as.issuer });
      return ["--assertion", `file:${plant(kit, "assertion", old)}`];
    },
  }),
  workload("T18l", "an assertion for the issuer and for others", {
    outcome: "refused",
    code: "wrong_audience",
    result: "no token request: each of them could use it at the others",
    says: ["aud", "alone"],
    source: (kit) => {
      const shared = jwt({ iss: "platform", sub: "ci", exp: 4e9, aud: [kit.as.issuer, kit.other.issuer] });
      return ["--assertion", `file:${plant(kit, "assertion", shared)}`];
    },
  }),
  ...(process.platform === "win32"
    ? []
    : [
        workload("T18m", "an assertion file in a folder in which others can put another one", {
          outcome: "store",
          code: "store_failed",
          result: "not read, and no token request",
          says: ["can be written by others", "chmod go-w"],
          requests: [],
          source: (kit) => {
            const path = plant(kit, "assertion", assertionFor(kit));
            chmodSync(dirname(path), 0o777);
            return ["--assertion", `file:${path}`];
          },
        }),
        workload("T18e", "a program that prints two lines for an assertion", {
          outcome: "usage",
          result: "no token request, and the output is not shown",
          says: ["more than one line"],
          source: (kit) => ["--assertion", `exec:cat ${plant(kit, "two-lines", "canary-line-1\ncanary-line-2")}`],
        }),
        workload("T18f", "a program that prints without end for an assertion", {
          outcome: "usage",
          result: "stopped at 64 KiB, and no token request",
          says: ["printed more than 65536 bytes, and was stopped"],
          source: () => ["--assertion", "exec:cat /dev/zero"],
        }),
        workload("T18j", "a program that prints 1 GB for an assertion", {
          outcome: "usage",
          result: "stopped at 64 KiB, and no token request",
          says: ["printed more than 65536 bytes, and was stopped"],
          source: () => ["--assertion", "exec:head -c 1000000000 /dev/zero"],
        }),
        workload("T18k", "a program that never ends for an assertion", {
          outcome: "unavailable",
          code: "timeout",
          result: "stopped after 30 s, and no token request",
          says: ["30"],
          hurry: 4,
          seconds: 45,
          source: () => ["--assertion", "exec:sleep 1000"],
        }),
      ]),
];

/** A machine grant that requests an ID-JAG from an identity provider first. */
function idJag(
  id: string,
  input: string,
  reply: (kit: Kit) => Reply | Route,
  over: Partial<HostileCase> & Pick<HostileCase, "outcome" | "result">,
): HostileCase {
  return machine(
    id,
    input,
    (kit) => {
      kit.other.routes["/idp"] = reply(kit);
    },
    {
      requests: [...UP_TO_ISSUER, "other POST /idp"],
      times: { "other POST /idp": 1 },
      store: "logins",
      command(kit) {
        plant(kit, ID_TOKEN, jwt({ iss: "idp", sub: "alice" }));
        const idp = ["--idp-client-id", "agent", "--idp-token-endpoint", `${kit.other.origin}/idp`];
        return ["token", kit.mcp.url, "--grant", "id-jag", ...CLIENT, ...idp, "--issuer", kit.as.issuer];
      },
      ...over,
    },
  );
}

const idJagAnswer = (
  claims: Record<string, unknown>,
  header: Record<string, unknown>,
  members: Record<string, unknown> = {},
) => ({
  json: { access_token: jwt(claims, header), issued_token_type: `${TYPE}id-jag`, token_type: "N_A", ...members },
});
const TYP = { typ: "oauth-id-jag+jwt" };

/** The claims of the requested ID-JAG. */
const requestedClaims = ({ as, mcp }: Kit) => ({
  ...{ aud: as.issuer, iss: "idp", sub: "alice", exp: 4e9 },
  ...{ client_id: "machine", resource: mcp.url },
});
const issued = (kit: Kit) => idJagAnswer(requestedClaims(kit), TYP);

const otherThanAsked = (id: string, claim: string, value: unknown): HostileCase =>
  idJag(
    id,
    `an ID-JAG with another ${claim} than the requested one`,
    (kit) => idJagAnswer({ ...requestedClaims(kit), [claim]: value }, TYP),
    {
      outcome: "refused",
      code: "bad_token_answer",
      result: "not sent to the issuer",
      says: [`${claim} of the ID-JAG`],
    },
  );

const userLogins: HostileCase[] = [
  idJag("T19a", "an ID-JAG for another issuer", () => idJagAnswer({ aud: "https://evil.example" }, TYP), {
    outcome: "refused",
    code: "bad_token_answer",
    result: "not sent to the issuer",
    says: ["aud of the token", "https://evil.example"],
  }),
  idJag("T19b", "another JWT in place of an ID-JAG", ({ as }) => idJagAnswer({ aud: as.issuer }, {}), {
    outcome: "refused",
    code: "bad_token_answer",
    result: "not sent to the issuer",
    says: ["typ of the ID-JAG"],
  }),
  idJag(
    "T19c",
    "an ID-JAG of another type",
    ({ as }) => idJagAnswer({ aud: as.issuer }, TYP, { issued_token_type: ACCESS }),
    { outcome: "refused", code: "bad_token_answer", result: "not sent to the issuer", says: ["issued_token_type"] },
  ),
  otherThanAsked("T19h", "iss", "other"),
  otherThanAsked("T19i", "client_id", "other"),
  otherThanAsked("T19j", "sub", "mallory"),
  otherThanAsked("T19k", "resource", "https://evil.example/mcp"),
  idJag("T19d", "an identity provider that redirects to another origin", elsewhere, {
    outcome: "refused",
    code: "redirect_refused",
    result: "not followed: the ID token is sent to one address only",
  }),
  idJag("T19e", "an identity provider that repeats the id token", () => echo("invalid_grant"), {
    outcome: "auth",
    code: "invalid_grant",
    result: "shown masked, with a hint; no request to the issuer",
    says: ["********", "AGENTAUTH_ID_TOKEN"],
  }),
  idJag("T19f", "an issuer that refuses an ID-JAG as used already", issued, {
    outcome: "auth",
    code: "invalid_grant",
    result: "an error with a hint; no other ID-JAG is requested for it",
    says: ["used already", "AGENTAUTH_ID_TOKEN"],
    requests: [...WITHOUT_RESOURCE, "other POST /idp"],
    times: { ...ONCE, "other POST /idp": 1 },
    arrange(kit) {
      kit.other.routes["/idp"] = issued(kit);
      kit.as.routes[TOKEN] = { status: 400, json: { error: "invalid_grant", error_description: "used already" } };
    },
  }),
  idJag("T19g", "an issuer that breaks the connection when it has an ID-JAG", issued, {
    outcome: "unavailable",
    result: "an error; the ID-JAG is not sent twice",
    requests: [...WITHOUT_RESOURCE, "other POST /idp"],
    times: { ...ONCE, "other POST /idp": 1 },
    arrange(kit) {
      kit.other.routes["/idp"] = issued(kit);
      kit.as.routes[TOKEN] = reset;
    },
  }),
];

/** An ID token of the issuer of the case in its form, without a signature. */
function idToken({ as }: Kit, over: Record<string, unknown>): string {
  const nonce = "another nonce";
  return jwt({ iss: as.issuer, sub: "alice", aud: "agent", iat: 1e9, exp: 4e9, nonce, ...over }, { kid: "unknown" });
}

/** `login --idp` at a hostile identity provider. */
function idpLogin(
  id: string,
  what: string,
  token: (kit: Kit) => string | undefined,
  says: HostileCase["says"],
): HostileCase {
  return {
    id,
    input: `an identity provider that answers a login with ${what}`,
    result: "refused; no login is stored",
    outcome: "refused",
    code: "bad_token_answer",
    arrange(kit) {
      kit.as.tokenAnswer = { id_token: token(kit) };
    },
    ...(says && { says }),
    requests: IDP_LOGIN,
    times: ONCE,
    command: ({ as }) => ["login", "--idp", as.issuer, "--idp-client-id", "agent", "--browser", "none"],
  };
}

const IDP_LOGIN = [
  "as GET /pool/.well-known/oauth-authorization-server",
  "as GET /.well-known/oauth-authorization-server/pool",
  "as GET /pool/authorize",
  ...ASKED_ONCE,
];

const idpLogins: HostileCase[] = [
  idpLogin("T20a", "no ID token", () => undefined, ["id_token", "is missing"]),
  idpLogin("T20b", "an ID token for another client", (kit) => idToken(kit, { aud: "other" }), [
    "it is not for the client",
  ]),
  idpLogin("T20c", "an ID token of another issuer", (kit) => idToken(kit, { iss: kit.elsewhere.origin }), [
    "its iss is not",
  ]),
  idpLogin("T20d", "an ID token for another login", (kit) => idToken(kit, {}), ["its nonce is not"]),
  idpLogin("T20f", "an ID token whose user is a number", (kit) => idToken(kit, { sub: 7 }), ["its sub is not a text"]),
  {
    ...idpLogin("T20g", "an ID token that is signed, and issued in the future", () => undefined, [
      "issued by now (iat)",
    ]),
    requests: [...IDP_LOGIN, "as GET /pool/jwks"],
    async arrange({ as }) {
      const { privateKey, publicKey } = await generateKeyPair("ES256");
      const keys = [{ ...(await exportJWK(publicKey)), alg: "ES256", kid: "one" }];
      as.routes["/pool/jwks"] = { json: { keys } };
      as.routes["/pool/authorize"] = async (request, nth) => {
        const nonce = new URL(request.url, as.origin).searchParams.get("nonce");
        const claims = { iss: as.issuer, sub: "alice", aud: "agent", iat: 39e8, exp: 4e9, nonce };
        const token = new SignJWT(claims).setProtectedHeader({ alg: "ES256", kid: "one" });
        as.tokenAnswer = { id_token: await token.sign(privateKey) };
        return { status: 302, headers: { location: as.callbackTo(request, nth) } };
      };
    },
  },
  idpLogin("T20e", "an ID token that was issued to another client", (kit) => idToken(kit, { azp: "other" }), [
    "it is not for the client",
  ]),
];

/** Assertions of workloads and of identity providers, and the logins there. */
export const assertions: readonly HostileCase[] = [...workloads, ...userLogins, ...idpLogins];
