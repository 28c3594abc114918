import { calculateThumbprint, generateKeyPair, generateProof, type KeyPair } from "dpop";
import { refusalError } from "../../http/refuse.js";
import { Secret } from "../../redact.js";
import { Nonces, type Prover } from "../http/http.js";
import type { Grant } from "../model/grant.js";
import type { Discovered, IssuerMetadata } from "../model/metadata.js";

/**
 * Whether tokens are bound to a key of this client (RFC 9449), so that a stolen token is useless: never; if the MCP
 * server accepts no others and its issuer supports it; or always, and then no other token is accepted.
 */
export type DpopPolicy = "off" | "auto" | "required";

export const DPOP_POLICIES = ["off", "auto", "required"] as const satisfies readonly DpopPolicy[];

/** The one algorithm that every implementation supports. */
const ALGORITHM = "ES256";

/** A new private key, as the text of a JWK. Every login has its own key, so that servers cannot link logins by it. */
export async function generateProofKey(): Promise<Secret> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  return new Secret(JSON.stringify(await crypto.subtle.exportKey("jwk", privateKey)));
}

export function createProver(key: Secret, nonces: Nonces = new Nonces()): Prover {
  let imported: Promise<KeyPair> | undefined;
  const pair = () => {
    imported ??= importPair(key);
    return imported;
  };
  return {
    nonces,
    thumbprint: async () => calculateThumbprint((await pair()).publicKey),
    async proof({ method, url }, accessToken) {
      const target = new URL(url);
      target.search = "";
      target.hash = "";
      return generateProof(await pair(), target.href, method, nonces.get(url), accessToken);
    },
  };
}

const CURVE = { name: "ECDSA", namedCurve: "P-256" };

async function importPair(key: Secret): Promise<KeyPair> {
  const { kty, crv, x, y, d } = JSON.parse(key.reveal()) as Record<"kty" | "crv" | "x" | "y" | "d", string>;
  const [privateKey, publicKey] = await Promise.all([
    crypto.subtle.importKey("jwk", { kty, crv, x, y, d }, CURVE, false, ["sign"]),
    crypto.subtle.importKey("jwk", { kty, crv, x, y }, CURVE, true, ["verify"]),
  ]);
  return { privateKey, publicKey };
}

/** The prover of a grant whose tokens are bound to a key; undefined for a grant of bearer tokens. */
export function proverFor({ proofKey }: Pick<Grant, "proofKey">, nonces: Nonces): Prover | undefined {
  return proofKey && createProver(proofKey, nonces);
}

/**
 * The key that the tokens of a new login are bound to; undefined for bearer tokens.
 *
 * @throws `AgentAuthError` `dpop_unsupported` if it is required and the issuer does not support it
 */
export async function newProofKey(policy: DpopPolicy, { resource, challenge, issuer }: Discovered<IssuerMetadata>) {
  const isOffered = issuer.dpopSigningAlgorithms?.includes(ALGORITHM) === true;
  if (policy === "required" && !isOffered) {
    throw refusalError("dpop_unsupported", {
      field: "dpop_signing_alg_values_supported",
      value: issuer.dpopSigningAlgorithms,
      from: issuer.url,
      rule: `must include "${ALGORITHM}", or its tokens cannot be bound to a key (RFC 9449 section 5.1)`,
      override: "dpop",
    });
  }
  const schemes = challenge?.schemes ?? [];
  const isNeeded = resource?.dpopRequired === true || (schemes.includes("dpop") && !schemes.includes("bearer"));
  const isWanted = policy === "required" || (policy === "auto" && isNeeded);
  return isWanted && isOffered ? generateProofKey() : undefined;
}

export function fitsPolicy(grant: Pick<Grant, "proofKey">, policy: DpopPolicy): boolean {
  return policy === "auto" || (policy === "required") === (grant.proofKey !== undefined);
}
