import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { shellWord } from "../../../src/redact.js";
import { ALL_METADATA, type HostileCase, UP_TO_ISSUER, unless, WHOLE_LOGIN } from "../case.js";
import { PLANTED } from "../checks.js";
import { ID_TOKEN, type Kit } from "../kit/kit.js";
import { logsIn, neverLogsIn } from "../kit/user.js";

const TOKEN = "/pool/token";
const CLIENT = ["--client-id", "machine"];
const OWN = "/pool/.well-known/oauth-authorization-server";
const OTHER_METADATA = ALL_METADATA.filter((one) => one.startsWith("as ")).map((one) => one.replace("as ", "other "));
const OTHER_KNOWN = OTHER_METADATA.slice(0, 2);

const PEM = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ format: "pem", type: "pkcs8" })
  .toString();

/** A JWT with an invalid signature. */
function jwt(claims: Record<string, unknown>, header: Record<string, unknown> = {}): string {
  const parts = [{ alg: "ES256", ...header }, claims].map((part) => Buffer.from(JSON.stringify(part)));
  return [...parts, Buffer.from("a signature")].map((part) => part.toString("base64url")).join(".");
}

/** A file with a secret. */
function plant({ folder, canaries }: Kit, name: string, text: string): string {
  const path = join(folder, PLANTED, name);
  mkdirSync(join(folder, PLANTED), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
  canaries.add(name, text.trim());
  return path;
}

interface Machine {
  name: string;
  flags(kit: Kit): string[];
}

const PROOFS: readonly Machine[] = [
  { name: "a secret", flags: () => CLIENT },
  { name: "a private key", flags: (kit) => [...CLIENT, "--private-key", plant(kit, "key", PEM)] },
];
const GRANTS: readonly Machine[] = [
  { name: "client credentials", flags: () => ["--grant", "client-credentials"] },
  {
    name: "an assertion",
    flags: (kit) => {
      const assertion = jwt({ iss: "platform", sub: "ci", exp: 4e9, aud: kit.as.issuer });
      return ["--grant", "jwt-bearer", "--assertion", `file:${plant(kit, "assertion", assertion)}`];
    },
  },
  {
    name: "an id token",
    flags: (kit) => {
      plant(kit, ID_TOKEN, jwt({ iss: "idp", sub: "alice" }));
      return ["--grant", "id-jag", "--idp-client-id", "agent", "--idp-token-endpoint", `${kit.elsewhere.origin}/idp`];
    },
  },
];
/** Three grants, both kinds of client. */
const MACHINES: readonly (Machine & { id: string })[] = GRANTS.flatMap((grant, nth) =>
  PROOFS.map((proof, which) => ({
    id: `${"abc"[nth]}${which + 1}`,
    name: `${grant.name} by a client with ${proof.name}`,
    flags: (kit: Kit) => [...grant.flags(kit), ...proof.flags(kit)],
  })),
);

const token = (kit: Kit, machine: Machine, ...more: string[]) => ["token", kit.mcp.url, ...machine.flags(kit), ...more];
const namesOther = ({ mcp, other }: Kit) => {
  mcp.metadata["authorization_servers"] = [other.issuer];
};
const offersPost = ({ as }: Kit) => {
  as.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
};

const UNBOUND = {
  outcome: "refused",
  code: "issuer_unbound",
  result: "no token request; the error names the issuer, the hint the flag to paste",
  requests: UP_TO_ISSUER,
  says: (kit: Kit) => [`"${kit.as.issuer}"`, `--issuer ${shellWord(kit.as.issuer)}`, "--trust-named-issuer"],
} as const satisfies Partial<HostileCase>;

/** First use: no login, no binding and no flag names the client's issuer. */
const firstUses: HostileCase[] = MACHINES.flatMap((machine) => [
  {
    ...UNBOUND,
    id: `Z1${machine.id}-home`,
    input: `${machine.name}, and an issuer that only the server names, with an empty home`,
    command: (kit) => token(kit, machine),
  },
  {
    ...UNBOUND,
    id: `Z1${machine.id}-memory`,
    input: `${machine.name}, and an issuer that only the server names, with a memory store`,
    environment: { AGENTAUTH_STORE: "memory" },
    command: (kit) => token(kit, machine),
  },
  {
    ...UNBOUND,
    id: `Z1${machine.id}-post`,
    input: `${machine.name}, and an issuer that only the server names and that offers only client_secret_post`,
    arrange: offersPost,
    command: (kit) => token(kit, machine),
  },
]);

/** A bound client, and a server that now names another issuer. */
const changes: HostileCase[] = MACHINES.flatMap((machine) => [
  {
    id: `Z1${machine.id}-logout`,
    input: `${machine.name}, bound to an issuer; after logout --all the server names another one`,
    result: "logout removes the binding: nothing is sent to an issuer that only the server names",
    outcome: "refused",
    code: "issuer_unbound",
    store: "any",
    prints: ["access-token"],
    drive: async (kit) => {
      await bindFirst(kit, machine);
      await kit.run(["logout", "--all"]);
      namesOther(kit);
      return kit.run(token(kit, machine));
    },
    says: (kit) => [kit.other.issuer],
    check: otherSawNothing,
  },
  {
    id: `Z2${machine.id}`,
    input: `${machine.name}, with --issuer, and a server that names another one`,
    result: "no token request, and no metadata request to the other issuer",
    outcome: "refused",
    code: "issuer_mismatch",
    arrange: namesOther,
    command: (kit) => token(kit, machine, "--issuer", kit.as.issuer),
    requests: ["mcp POST /mcp", "mcp GET /.well-known/oauth-protected-resource/mcp"],
    says: (kit) => [kit.as.issuer, kit.other.issuer],
  },
]);

/** Binds the client to the first issuer; the outcome of the command does not matter. */
async function bindFirst(kit: Kit, machine: Machine): Promise<void> {
  const { as } = kit;
  as.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic", "private_key_jwt"];
  kit.elsewhere.routes["/idp"] = {
    json: {
      access_token: jwt(
        { iss: "idp", sub: "alice", client_id: "machine", resource: kit.mcp.url, exp: 4e9, aud: as.issuer },
        { typ: "oauth-id-jag+jwt" },
      ),
      issued_token_type: "urn:ietf:params:oauth:token-type:id-jag",
      token_type: "N_A",
      expires_in: 60,
    },
  };
  await kit.run(token(kit, machine, "--issuer", as.issuer));
}

function otherSawNothing({ log, as }: Kit): string[] {
  const sent = log.filter(({ peer, path }) => peer === "other" && path.startsWith(TOKEN));
  const first = as.to(TOKEN).length === 1 ? [] : [`the first issuer got ${as.to(TOKEN).length} requests for a token`];
  return [...first, ...sent.map(({ path }) => `sent to the other issuer: ${path}`)];
}

const [BY_SECRET = MACHINES[0]] = MACHINES;
const trusted: HostileCase[] = BY_SECRET
  ? [
      {
        id: "Z1-trusted",
        input:
          "a client that --trust-named-issuer has bound, with the flag again, and a server that names another issuer",
        result: "the flag binds once: nothing is sent to the other issuer",
        outcome: "auth",
        code: "issuer_changed",
        store: "any",
        prints: ["access-token"],
        drive: async (kit) => {
          const args = ["login", kit.mcp.url, ...BY_SECRET.flags(kit), "--trust-named-issuer"];
          await kit.run(args);
          namesOther(kit);
          kit.as.routes[TOKEN] = { status: 404, text: "" };
          return kit.run(args);
        },
        requests: [...UP_TO_ISSUER, ...OTHER_KNOWN, "as POST /pool/token"],
      },
      {
        id: "Z1-use",
        input: "a client that was used without a secret at an issuer, and then with a secret",
        result: "refused: a login without a secret does not bind a client with a secret",
        outcome: "refused",
        code: "issuer_unbound",
        store: "any",
        prints: ["access-token"],
        drive: async (kit) => {
          await kit.run(["login", kit.mcp.url, "--browser", "none", ...CLIENT], {
            env: { AGENTAUTH_CLIENT_SECRET: undefined },
          });
          return kit.run(token(kit, BY_SECRET));
        },
        times: { "as POST /pool/token": 1 },
      },
    ]
  : [];

/** An assertion for an audience. */
function assertionFor(id: string, input: string, aud: (kit: Kit) => unknown): HostileCase {
  return {
    id,
    input: `an assertion ${input}, and --issuer`,
    result: "not sent; the error names its audience and the issuer",
    outcome: "refused",
    code: "wrong_audience",
    requests: UP_TO_ISSUER,
    store: "logins",
    command: (kit) => [
      ...["token", kit.mcp.url, "--grant", "jwt-bearer", ...CLIENT, "--issuer", kit.as.issuer],
      ...[
        "--assertion",
        `file:${plant(kit, "assertion", jwt({ iss: "platform", sub: "ci", exp: 4e9, aud: aud(kit) }))}`,
      ],
    ],
    says: (kit) => ["(RFC 7523 section 3)", kit.as.issuer],
  };
}

const assertions: HostileCase[] = [
  assertionFor("Z3a", "for another issuer", ({ other }) => other.issuer),
  assertionFor("Z3b", "for the token endpoint of another issuer", ({ other }) => `${other.issuer}/token`),
  assertionFor("Z3c", "for several others", ({ other }) => [other.issuer, "https://honest.example"]),
  assertionFor("Z3d", "without an audience", () => undefined),
];

const methods: HostileCase[] = [
  {
    id: "Z4",
    input: "a client with a private key that is bound to an issuer, which then offers only client_secret_post",
    result: "no token request: the available secret does not replace the key",
    outcome: "auth",
    code: "client_auth_unsupported",
    arrange: offersPost,
    store: "logins",
    command: (kit) => [
      ...["token", kit.mcp.url, "--grant", "client-credentials", "--issuer", kit.as.issuer],
      ...[...CLIENT, "--private-key", plant(kit, "key", PEM)],
    ],
    requests: UP_TO_ISSUER,
    says: ["private_key_jwt", "client_secret_post"],
  },
];

const userLogins: HostileCase[] = [
  ...PROOFS.map(
    (proof, which): HostileCase => ({
      ...UNBOUND,
      id: `Z5${"ab"[which]}`,
      input: `a user's login by a client with ${proof.name}, and an issuer that only the server names, without a terminal`,
      user: neverLogsIn,
      command: (kit) => ["login", kit.mcp.url, "--browser", "none", ...proof.flags(kit)],
    }),
  ),
  {
    id: "Z7",
    input: "a client without a secret that was used at an issuer; the server then names another one",
    result: "not used there",
    outcome: "auth",
    code: "issuer_changed",
    store: "any",
    drive: async (kit) => {
      const env = { AGENTAUTH_CLIENT_SECRET: undefined };
      const args = ["login", kit.mcp.url, "--browser", "none", ...CLIENT];
      await kit.run(args, { env });
      namesOther(kit);
      return kit.run(args, { env });
    },
    says: (kit) => [kit.as.issuer, kit.other.issuer],
    check: otherSawNothing,
  },
];

/** The second server names the first issuer in its metadata, and the first one publishes nothing. */
function claims(kit: Kit, members: Record<string, unknown> = {}): void {
  namesOther(kit);
  delete kit.as.routes[OWN];
  Object.assign(kit.other.metadata, { issuer: kit.as.issuer }, members);
}

const AFTER_ISSUER = WHOLE_LOGIN.slice(UP_TO_ISSUER.length);

/** A login with --issuer at a server whose issuer claims to be that one. */
function claimed(
  id: string,
  input: string,
  arrange: (kit: Kit) => unknown,
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input: `a login with --issuer, where ${input}`,
    result: "refused: no registration, no browser, no code",
    outcome: "refused",
    code: "bad_server_metadata",
    arrange,
    command: (kit) => ["login", kit.mcp.url, "--browser", "none", "--issuer", kit.as.issuer],
    user: neverLogsIn,
    requests: [...ALL_METADATA, ...OTHER_METADATA],
    ...over,
  };
}

const ENDPOINTS = ["registration", "device_authorization", "introspection", "revocation", "end_session"];

const claimers: HostileCase[] = [
  claimed(
    "Z8a",
    "the named issuer claims to be that one, with its login page, and keeps the token endpoint",
    (kit) => claims(kit, { ...kit.as.metadata, token_endpoint: `${kit.other.issuer}/token` }),
    {
      says: ({ as, other }) => [
        `authorization_endpoint "${as.issuer}/authorize"`,
        `must be at ${other.origin}, the origin of its token_endpoint`,
      ],
    },
  ),
  claimed(
    "Z8b",
    "the named issuer does the same, with --allow-cross-origin-endpoints",
    (kit) => claims(kit, { ...kit.as.metadata, token_endpoint: `${kit.other.issuer}/token` }),
    {
      command: (kit) => [
        ...["login", kit.mcp.url, "--browser", "none", "--issuer", kit.as.issuer],
        "--allow-cross-origin-endpoints",
      ],
    },
  ),
  ...ENDPOINTS.map((name) =>
    claimed(
      `Z8c-${name}_endpoint`,
      `the named issuer claims to be that one, with its endpoints, and keeps the ${name}_endpoint`,
      (kit) => claims(kit, { ...kit.as.metadata, [`${name}_endpoint`]: `${kit.other.issuer}/${name}` }),
      { says: ({ other }) => [`${name}_endpoint "${other.issuer}/${name}"`, "must be at"] },
    ),
  ),
  claimed("Z8d", "the named issuer claims to be that one, which a client with a secret is for", (kit) => claims(kit), {
    result: "refused: the secret is sent to the origin of its issuer alone",
    command: (kit) => ["login", kit.mcp.url, "--browser", "none", "--issuer", kit.as.issuer, ...CLIENT],
    says: ({ as }) => [`must be at ${as.origin}, the origin of the issuer`],
  }),
  claimed("Z8e", "the named issuer claims to be that one, which publishes its own metadata", namesOther, {
    result: "the login is at the issuer that the user names; the other one gets no request",
    outcome: "ok",
    code: undefined,
    user: logsIn,
    requests: WHOLE_LOGIN,
  }),
  claimed(
    "Z8f",
    "the named issuer claims to be that one, which does not answer",
    (kit) => {
      claims(kit);
      kit.as.routes[OWN] = { status: 503, text: "" };
    },
    {
      result: "no other metadata is requested",
      outcome: "unavailable",
      code: "server_error",
      retries: false,
      requests: ALL_METADATA,
    },
  ),
  claimed(
    "Z8g",
    "the named issuer claims to be that one, and its callback names another",
    (kit) => {
      claims(kit);
      kit.other.callback["iss"] = kit.other.issuer;
    },
    {
      result: "refused: iss must be exactly the issuer of the flag",
      code: "iss_mismatch",
      user: logsIn,
      store: "logins",
      requests: [...ALL_METADATA, ...OTHER_KNOWN, ...["other POST /pool/register", "other GET /pool/authorize"]],
    },
  ),
  claimed(
    "Z8i",
    "the named issuer claims to be that one, with keys at another origin",
    (kit) => {
      claims(kit, { jwks_uri: `${kit.elsewhere.origin}/jwks` });
      kit.other.callback["iss"] = kit.as.issuer;
    },
    {
      result: "the login is at the claimant, which the user names; nothing is sent to the other origin",
      outcome: "ok",
      code: undefined,
      user: logsIn,
      requests: [...ALL_METADATA, ...OTHER_KNOWN, ...AFTER_ISSUER.map((one) => one.replace("as ", "other "))],
    },
  ),
  {
    id: "Z8h",
    input: "a login with --issuer whose server then names another issuer, which claims the same",
    result: "refused: the exception is for the issuer that the server named at the login",
    outcome: "auth",
    code: "issuer_changed",
    store: "any",
    drive: async (kit) => {
      const { as, other, mcp } = kit;
      claims(kit);
      other.callback["iss"] = as.issuer;
      const login = ["login", mcp.url, "--browser", "none"];
      await kit.run([...login, "--issuer", as.issuer]);
      mcp.metadata["authorization_servers"] = [`${other.issuer}/moved`];
      return kit.run(login, { user: neverLogsIn });
    },
    says: ({ as, other }) => [as.issuer, `${other.issuer}/moved`],
    check: ({ other }) =>
      unless({ "one login, and nothing of the other issuer is read": other.to("/pool/token").length === 1 }),
    requests: [...ALL_METADATA, ...OTHER_KNOWN, ...AFTER_ISSUER.map((one) => one.replace("as ", "other "))],
  },
];

/** Bindings of clients to issuers, at first use and after it. */
export const issuerBinding: readonly HostileCase[] = [
  ...firstUses,
  ...changes,
  ...trusted,
  ...assertions,
  ...methods,
  ...userLogins,
  ...claimers,
];
