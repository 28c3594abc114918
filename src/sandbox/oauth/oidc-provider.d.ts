/** Its modules have no types of their own; `oidc.ts` says what the sandbox uses of them. */
declare module "oidc-provider/lib/*";
