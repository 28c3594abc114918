import type { Grant } from "../model/grant.js";

/** An option that a login was made with and that stays in force for its issuer: an exception of this one server. */
export interface LoginException {
  /** The option of `AgentClient`, such as `acceptTokenType`. */
  option: string;
  /** Its value; absent for an option that is only set. */
  value?: string;
}

/** The exceptions that are stored with a login. */
export function exceptionsOf(grant: Grant): LoginException[] {
  const { overrides, acceptedTokenType, resource, issuer, namedIssuer } = grant;
  const exceptionOf = (option: string) => (option === "resource" ? { option, value: resource } : { option });
  return [
    ...overrides.map(exceptionOf),
    ...(acceptedTokenType === undefined ? [] : [{ option: "acceptTokenType", value: acceptedTokenType }]),
    ...(namedIssuer === undefined ? [] : [{ option: "issuer", value: issuer }]),
  ];
}
