export type * from "oidc-provider";
export type { default as OidcProvider } from "oidc-provider";
// Its modules one by one, since its entry point prints a warning about the version of Node.js.
export * as errorClasses from "oidc-provider/lib/helpers/errors.js";
export { applyDpopBinding } from "oidc-provider/lib/helpers/grant_common.js";
export { default as readProof } from "oidc-provider/lib/helpers/validate_dpop.js";
export { Provider } from "oidc-provider/lib/provider.js";
