import type {
  AccessToken,
  ClientCredentials,
  errors,
  KoaContextWithOIDC,
  OidcProvider,
  TokenEndpointGrantContext,
} from "#packages/oidc-provider";

export type OidcErrors = typeof errors;

/** How custom grants bind their tokens to a key (RFC 9449). */
export interface OidcProofs {
  /** Validates the proof of a request; undefined where there is none, or where DPoP is off. */
  read(provider: OidcProvider, ctx: TokenEndpointGrantContext): Promise<object | undefined>;
  /** Binds a token to the key of a proof and marks the proof as used; without a proof it does nothing. */
  bind(
    provider: OidcProvider,
    ctx: TokenEndpointGrantContext,
    proof: object | undefined,
    token: AccessToken | ClientCredentials,
  ): Promise<void>;
}

/** A parameter; `undefined` where it is empty or repeated. */
export function readParam(params: KoaContextWithOIDC["oidc"]["params"], name: string): string | undefined {
  const value = params?.[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Loads oidc-provider by its modules, since its entry point prints a warning about the version of Node.js. */
export async function loadOidc() {
  const { Provider, errorClasses, readProof: read, applyDpopBinding: bind } = await import("#packages/oidc-provider");
  return {
    Provider: Provider as typeof OidcProvider,
    errors: errorClasses as unknown as OidcErrors,
    proofs: { read, bind } as OidcProofs,
  };
}
