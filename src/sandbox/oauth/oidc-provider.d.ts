/** The package has no types; `oidc.ts` describes what the sandbox uses of it. */
declare module "oidc-provider/lib/*";
