import { generateProofKey } from "../../../src/oauth/dpop/dpop.js";
import { fileStore } from "../../../src/store/file/file.js";
import type { Reply, Route } from "../../helpers/peer.js";
import { ALL_METADATA, type HostileCase, REFRESH, UP_TO_ISSUER, unless, WHOLE_LOGIN } from "../case.js";
import type { Kit } from "../kit/kit.js";

const TOKEN = "/pool/token";
const NONCE = "dpop-nonce";

/** Makes the server require bound tokens, and the issuer issue them. */
function bind({ as, mcp }: Kit): void {
  as.metadata["dpop_signing_alg_values_supported"] = ["ES256"];
  as.tokenAnswer = { token_type: "DPoP" };
  mcp.challenge = String(mcp.challenge).replace("Bearer", "DPoP");
}

/** A login with an expired token that is bound to a key. */
async function saveExpiredLogin(kit: Kit): Promise<void> {
  bind(kit);
  const proofKey = await generateProofKey();
  kit.canaries.add("proof key", (JSON.parse(proofKey.reveal()) as { d: string }).d);
  await kit.saveLogin({ proofKey }, { expiresAt: Date.now() - 1000, obtainedAt: Date.now() - 3_600_000 });
}

const askForNonce = (nonce: string): Reply => ({
  status: 400,
  headers: { [NONCE]: nonce },
  json: { error: "use_dpop_nonce" },
});

/** A token request with a code, whose proof the issuer rejects. */
function rejectedProof(
  id: string,
  input: string,
  route: Route,
  over: Partial<HostileCase> & Pick<HostileCase, "result" | "outcome">,
): HostileCase {
  return {
    id,
    input,
    arrange(kit) {
      bind(kit);
      kit.as.routes[TOKEN] = route;
    },
    requests: WHOLE_LOGIN,
    store: "logins",
    ...over,
  };
}

const nonces: HostileCase[] = [
  rejectedProof("B1a", "another nonce required in the proof, every time", (_request, nth) => askForNonce(`n-${nth}`), {
    result: "two requests, then an error",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 2 },
  }),
  rejectedProof("B1b", "a nonce that is required, and no DPoP-Nonce header", askForNonceWithout(), {
    result: "one request, then an error",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 1 },
  }),
  rejectedProof("B1c", "a nonce of 6,000 characters", askForNonce("n".repeat(6000)), {
    result: "not used in a proof; an error",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 1 },
  }),
  rejectedProof("B1d", "a nonce with quotes and backslashes", askForNonce('a","ath":"\\'), {
    result: "not used in a proof; an error",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 1 },
  }),
];

function askForNonceWithout(): Reply {
  return { status: 400, json: { error: "use_dpop_nonce" } };
}

const answers: HostileCase[] = [
  {
    id: "B2a",
    input: "a bearer token in response to a proof",
    result: "refused: the token is not bound to the key",
    outcome: "refused",
    code: "bad_token_answer",
    says: ["token_type", "DPoP"],
    arrange(kit) {
      bind(kit);
      kit.as.tokenAnswer = { token_type: "Bearer" };
    },
    requests: WHOLE_LOGIN,
    store: "logins",
  },
  {
    id: "B2b",
    input: "a bearer token with --dpop required, and a server that accepts both",
    result: "refused: the token must be bound",
    outcome: "refused",
    code: "bad_token_answer",
    says: ["token_type", "DPoP"],
    flags: ["--dpop", "required"],
    options: { dpop: "required" },
    arrange: ({ as }) => {
      as.metadata["dpop_signing_alg_values_supported"] = ["ES256"];
    },
    requests: WHOLE_LOGIN,
    store: "logins",
  },
  ...[
    { id: "B2c", input: "missing", names: undefined },
    { id: "B2d", input: '"none" and "HS256"', names: ["none", "HS256"] },
  ].map(
    ({ id, input, names }): HostileCase => ({
      id,
      input: `proof algorithms ${input}, with --dpop required`,
      result: "refused before a login",
      outcome: "refused",
      code: "dpop_unsupported",
      says: ["dpop_signing_alg_values_supported", "ES256", "--dpop auto"],
      flags: ["--dpop", "required"],
      options: { dpop: "required" },
      arrange: ({ as }) => {
        as.metadata["dpop_signing_alg_values_supported"] = names;
      },
      requests: UP_TO_ISSUER,
    }),
  ),
  {
    id: "B2e",
    input: 'a "dpop_signing_alg_values_supported" that is not a list',
    result: "refused",
    outcome: "refused",
    code: "bad_server_metadata",
    says: ["dpop_signing_alg_values_supported"],
    arrange: ({ as }) => {
      as.metadata["dpop_signing_alg_values_supported"] = "ES256";
    },
    requests: ALL_METADATA,
  },
  {
    id: "B2f",
    input: "an authorization endpoint that contains a dpop_jkt",
    result: "ours takes its place: else the code could be bound to another key",
    outcome: "ok",
    arrange(kit) {
      bind(kit);
      kit.as.metadata["authorization_endpoint"] = `${kit.as.issuer}/authorize?dpop_jkt=theirs`;
    },
    requests: WHOLE_LOGIN,
    check: ({ as }) =>
      unless({ "dpop_jkt is not theirs": as.to("/pool/authorize").every(({ url }) => !url.includes("theirs")) }),
  },
];

const refreshes: HostileCase[] = [
  {
    id: "B3a",
    input: "a refresh answered with another nonce every time",
    result: "two requests, then an error; the login stays",
    outcome: "remote",
    command: "token",
    arrange: async (kit) => {
      await saveExpiredLogin(kit);
      kit.as.routes[TOKEN] = (_request, nth) => askForNonce(`n-${nth}`);
    },
    environment: { BROWSER: "false" },
    requests: REFRESH,
    times: { "as POST /pool/token": 2 },
    store: "same",
  },
  {
    id: "B3b",
    input: "a refresh answered with invalid_dpop_proof",
    result: "an error; the login stays",
    outcome: "remote",
    command: "token",
    says: ["invalid_dpop_proof"],
    arrange: async (kit) => {
      await saveExpiredLogin(kit);
      kit.as.routes[TOKEN] = { status: 400, json: { error: "invalid_dpop_proof" } };
    },
    environment: { BROWSER: "false" },
    requests: REFRESH,
    times: { "as POST /pool/token": 1 },
    store: "same",
  },
];

/** Requests with a valid bound token. */
const sent: HostileCase[] = [
  {
    id: "B4a",
    input: "a redirect of a request with a bound token to another server",
    result: "refused: neither token nor proof is sent there",
    outcome: "refused",
    code: "redirect_refused",
    says: ({ elsewhere }) => [elsewhere.origin],
    arrange: async (kit) => {
      await saveValidLogin(kit);
      kit.mcp.routes["/mcp"] = { status: 307, headers: { location: `${kit.elsewhere.origin}/mcp` } };
    },
    command: ({ mcp }) => ["request", mcp.url],
    requests: ["mcp GET /mcp"],
    store: "same",
    cliOnly: true,
  },
  {
    id: "B4b",
    input: "another nonce required in every request with a bound token",
    result: "two requests, two more after a refresh, then an error",
    outcome: "auth",
    arrange: async (kit) => {
      await saveValidLogin(kit);
      kit.mcp.routes["/mcp"] = (_request, nth) => ({
        status: 401,
        headers: { [NONCE]: `n-${nth}`, "www-authenticate": 'DPoP error="use_dpop_nonce"' },
      });
    },
    command: ({ mcp }) => ["request", mcp.url],
    requests: ["mcp GET /mcp", ...REFRESH],
    times: { "mcp GET /mcp": 4, "as POST /pool/token": 1 },
    store: "any",
    cliOnly: true,
    check: async ({ home }) => {
      const [grant] = await fileStore(home).list();
      return unless({ "the login is stored": grant !== undefined && !grant.retired });
    },
  },
  {
    id: "B4c",
    input: "the command token, with a bound token",
    result: "refused with empty stdout: the token is useless without its key",
    outcome: "usage",
    says: ["DPoP", "agentauth request"],
    arrange: saveValidLogin,
    command: ({ mcp }) => ["token", mcp.url],
    requests: [],
    store: "same",
    cliOnly: true,
    check: (_kit, run) => unless({ "stdout is empty": run?.stdout === "" }),
  },
];

async function saveValidLogin(kit: Kit): Promise<void> {
  await saveExpiredLogin(kit);
  const [grant] = await fileStore(kit.home).list();
  if (!grant) throw new Error("no login is stored");
  const tokens = { ...grant.tokens, expiresAt: Date.now() + 3_600_000, obtainedAt: Date.now() };
  await fileStore(kit.home).save({ ...grant, tokens, generation: grant.generation + 1 }, grant.generation);
}

export const dpop: readonly HostileCase[] = [...nonces, ...answers, ...refreshes, ...sent];
