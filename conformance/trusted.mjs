// The scenarios whose context has credentials of a client and names no issuer for them: the client under test is given
// --trust-named-issuer there, and nowhere else.
const NAMING_NO_ISSUER = [
  "auth/client-credentials-basic",
  "auth/client-credentials-jwt",
  "auth/enterprise-managed-authorization",
  "auth/wif-jwt-bearer",
  "auth/pre-registration",
];

/** Whether the issuer that the server names has to be trusted in a scenario. */
export function namesNoIssuer(scenario) {
  return NAMING_NO_ISSUER.includes(scenario);
}
