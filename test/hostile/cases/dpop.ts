import { generateProofKey } from "../../../src/oauth/dpop/dpop.js";
import { fileStore } from "../../../src/store/file/file.js";
import { EXCHANGED, type HostileCase, KNOWN, RENEWED, UNKNOWN, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";
import type { Reply, Route } from "../kit/peer.js";

const TOKEN = "/pool/token";
const NONCE = "dpop-nonce";

/** A server that takes bound tokens alone, and an issuer that binds them. */
function bind({ as, mcp }: Kit): void {
  as.metadata["dpop_signing_alg_values_supported"] = ["ES256"];
  as.tokenAnswer = { token_type: "DPoP" };
  mcp.challenge = String(mcp.challenge).replace("Bearer", "DPoP");
}

/** A login whose token is bound to a key, and has ended. */
async function boundLogin(kit: Kit): Promise<void> {
  bind(kit);
  const proofKey = await generateProofKey();
  kit.canaries.add("proof key", (JSON.parse(proofKey.reveal()) as { d: string }).d);
  await kit.keep({ proofKey }, { expiresAt: Date.now() - 1000, obtainedAt: Date.now() - 3_600_000 });
}

const askForNonce = (nonce: string): Reply => ({
  status: 400,
  headers: { [NONCE]: nonce },
  json: { error: "use_dpop_nonce" },
});

/** A code, answered by a server that is not content with the proof. */
function unproven(
  id: string,
  came: string,
  route: Route,
  over: Partial<HostileCase> & Pick<HostileCase, "done" | "outcome">,
): HostileCase {
  return {
    id,
    came,
    arrange(kit) {
      bind(kit);
      kit.as.routes[TOKEN] = route;
    },
    requests: EXCHANGED,
    store: "logins",
    ...over,
  };
}

const nonces: HostileCase[] = [
  unproven("B1a", "another nonce required in the proof, every time", (_request, nth) => askForNonce(`n-${nth}`), {
    done: "two requests, then an error",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 2 },
  }),
  unproven("B1b", "a nonce that is required, and no DPoP-Nonce header", askForNonceWithout(), {
    done: "one request, then an error",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 1 },
  }),
  unproven("B1c", "a nonce of 6,000 characters", askForNonce("n".repeat(6000)), {
    done: "not used in a proof; an error",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 1 },
  }),
  unproven("B1d", "a nonce with quotes and backslashes", askForNonce('a","ath":"\\'), {
    done: "not used in a proof; an error",
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
    came: "a bearer token in response to a proof",
    done: "refused: the token is not bound to the key",
    outcome: "refused",
    code: "bad_token_answer",
    says: ["token_type", "DPoP"],
    arrange(kit) {
      bind(kit);
      kit.as.tokenAnswer = { token_type: "Bearer" };
    },
    requests: EXCHANGED,
    store: "logins",
  },
  {
    id: "B2b",
    came: "a bearer token with --dpop required, and a server that accepts both",
    done: "refused: the token must be bound",
    outcome: "refused",
    code: "bad_token_answer",
    says: ["token_type", "DPoP"],
    flags: ["--dpop", "required"],
    options: { dpop: "required" },
    arrange: ({ as }) => {
      as.metadata["dpop_signing_alg_values_supported"] = ["ES256"];
    },
    requests: EXCHANGED,
    store: "logins",
  },
  ...[
    { id: "B2c", came: "missing", names: undefined },
    { id: "B2d", came: '"none" and "HS256"', names: ["none", "HS256"] },
  ].map(
    ({ id, came, names }): HostileCase => ({
      id,
      came: `proof algorithms ${came}, with --dpop required`,
      done: "refused before a login",
      outcome: "refused",
      code: "dpop_unsupported",
      says: ["dpop_signing_alg_values_supported", "ES256", "--dpop auto"],
      flags: ["--dpop", "required"],
      options: { dpop: "required" },
      arrange: ({ as }) => {
        as.metadata["dpop_signing_alg_values_supported"] = names;
      },
      requests: KNOWN,
    }),
  ),
  {
    id: "B2e",
    came: 'a "dpop_signing_alg_values_supported" that is not a list',
    done: "refused",
    outcome: "refused",
    code: "bad_server_metadata",
    says: ["dpop_signing_alg_values_supported"],
    arrange: ({ as }) => {
      as.metadata["dpop_signing_alg_values_supported"] = "ES256";
    },
    requests: UNKNOWN,
  },
  {
    id: "B2f",
    came: "an authorization endpoint that contains a dpop_jkt",
    done: "refused: the code could be bound to another key",
    outcome: "refused",
    says: ["dpop_jkt"],
    arrange(kit) {
      bind(kit);
      kit.as.metadata["authorization_endpoint"] = `${kit.as.issuer}/authorize?dpop_jkt=theirs`;
    },
    requests: UNKNOWN,
  },
];

const refreshes: HostileCase[] = [
  {
    id: "B3a",
    came: "a refresh answered with another nonce every time",
    done: "two requests, then an error; the login stays",
    outcome: "remote",
    command: "token",
    arrange: async (kit) => {
      await boundLogin(kit);
      kit.as.routes[TOKEN] = (_request, nth) => askForNonce(`n-${nth}`);
    },
    environment: { BROWSER: "false" },
    requests: RENEWED,
    times: { "as POST /pool/token": 2 },
    store: "same",
  },
  {
    id: "B3b",
    came: "a refresh answered with invalid_dpop_proof",
    done: "an error; the login stays",
    outcome: "remote",
    command: "token",
    says: ["invalid_dpop_proof"],
    arrange: async (kit) => {
      await boundLogin(kit);
      kit.as.routes[TOKEN] = { status: 400, json: { error: "invalid_dpop_proof" } };
    },
    environment: { BROWSER: "false" },
    requests: RENEWED,
    times: { "as POST /pool/token": 1 },
    store: "same",
  },
];

/** Requests with a bound token that lives. */
const sent: HostileCase[] = [
  {
    id: "B4a",
    came: "a redirect of a request with a bound token to another server",
    done: "refused: neither token nor proof is sent there",
    outcome: "refused",
    code: "redirect_refused",
    says: ({ elsewhere }) => [elsewhere.origin],
    arrange: async (kit) => {
      await livingLogin(kit);
      kit.mcp.routes["/mcp"] = { status: 307, headers: { location: `${kit.elsewhere.origin}/mcp` } };
    },
    command: ({ mcp }) => ["request", mcp.url],
    requests: ["mcp GET /mcp"],
    store: "same",
    cliOnly: true,
  },
  {
    id: "B4b",
    came: "another nonce required in every request with a bound token",
    done: "two requests, two more after a refresh, then an error",
    outcome: "auth",
    arrange: async (kit) => {
      await livingLogin(kit);
      kit.mcp.routes["/mcp"] = (_request, nth) => ({
        status: 401,
        headers: { [NONCE]: `n-${nth}`, "www-authenticate": 'DPoP error="use_dpop_nonce"' },
      });
    },
    command: ({ mcp }) => ["request", mcp.url],
    requests: ["mcp GET /mcp", ...RENEWED],
    times: { "mcp GET /mcp": 4, "as POST /pool/token": 1 },
    store: "any",
    cliOnly: true,
    check: async ({ home }) => {
      const [grant] = await fileStore(home).list();
      return unless({ "the login is kept": grant !== undefined && !grant.retired });
    },
  },
  {
    id: "B4c",
    came: "the command token, with a bound token",
    done: "refused with empty stdout: the token is useless without its key",
    outcome: "usage",
    says: ["DPoP", "agentauth request"],
    arrange: livingLogin,
    command: ({ mcp }) => ["token", mcp.url],
    requests: [],
    store: "same",
    cliOnly: true,
    check: (_kit, run) => unless({ "stdout is empty": run?.stdout === "" }),
  },
];

async function livingLogin(kit: Kit): Promise<void> {
  await boundLogin(kit);
  const [grant] = await fileStore(kit.home).list();
  if (!grant) throw new Error("nothing was kept");
  const tokens = { ...grant.tokens, expiresAt: Date.now() + 3_600_000, obtainedAt: Date.now() };
  await fileStore(kit.home).save({ ...grant, tokens, generation: grant.generation + 1 }, grant.generation);
}

export const dpop: readonly HostileCase[] = [...nonces, ...answers, ...refreshes, ...sent];
