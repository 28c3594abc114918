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
  unproven("B1a", "another nonce that is wanted in the proof, every time", (_request, nth) => askForNonce(`n-${nth}`), {
    done: "asked twice, then an end",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 2 },
  }),
  unproven("B1b", "a nonce that is wanted, and none that is given", askForNonceWithout(), {
    done: "asked once, then an end",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 1 },
  }),
  unproven("B1c", "a nonce of 6,000 characters", askForNonce("n".repeat(6000)), {
    done: "not put into a proof; an end",
    outcome: "remote",
    says: ["use_dpop_nonce"],
    times: { "as POST /pool/token": 1 },
  }),
  unproven("B1d", "a nonce with quotes and backslashes", askForNonce('a","ath":"\\'), {
    done: "not put into a proof; an end",
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
    came: "a bearer token in answer to a proof",
    done: "refused: whoever finds it could use it",
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
    came: "a bearer token where --dpop required is said and the server takes both",
    done: "refused: nothing that is less than was asked for",
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
    { id: "B2c", came: "no word", names: undefined },
    { id: "B2d", came: '"none" and "HS256"', names: ["none", "HS256"] },
  ].map(
    ({ id, came, names }): HostileCase => ({
      id,
      came: `${came} on how proofs are signed, where --dpop required is said`,
      done: "refused, nobody asked to sign in",
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
    came: 'a "dpop_signing_alg_values_supported" that is no list',
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
    came: "an authorization endpoint that brings a dpop_jkt of its own",
    done: "refused: the code could be bound to another's key",
    outcome: "refused",
    says: ["dpop_jkt"],
    arrange(kit) {
      bind(kit);
      kit.as.metadata["authorization_endpoint"] = `${kit.as.issuer}/authorize?dpop_jkt=theirs`;
    },
    requests: UNKNOWN,
  },
];

const renewals: HostileCase[] = [
  {
    id: "B3a",
    came: "a renewal answered with another nonce every time",
    done: "asked twice; nobody is signed out",
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
    came: "a renewal answered with invalid_dpop_proof",
    done: "an end; nobody is signed out",
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
    done: "refused: neither token nor proof goes there",
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
    came: "a nonce that is wanted in every request with a bound token, another each time",
    done: "asked twice, once more after a renewal, then an end",
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
    came: "a bound token that is asked for as it is",
    done: "refused, stdout empty: without its key it is good for nothing",
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

export const dpop: readonly HostileCase[] = [...nonces, ...answers, ...renewals, ...sent];
