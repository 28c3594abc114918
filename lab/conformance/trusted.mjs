// The scenarios whose context has client credentials without an issuer: only there the client under test gets
// --trust-named-issuer.
const NAMING_NO_ISSUER = [
  "auth/client-credentials-basic",
  "auth/client-credentials-jwt",
  "auth/enterprise-managed-authorization",
  "auth/wif-jwt-bearer",
  "auth/pre-registration",
];

/** Whether a scenario needs --trust-named-issuer. */
export function namesNoIssuer(scenario) {
  return NAMING_NO_ISSUER.includes(scenario);
}
