import { isAgentAuthError, withHint } from "../../errors.js";
import { quote } from "../../redact.js";
import { NO_RESOURCE } from "../model/resource.js";

/** What Entra ID reports, under several codes, if the resource does not match the scopes. */
const ENTRA_MISMATCH = "AADSTS9010010";

/** Adds the option `resource` to the error of an issuer that rejects the resource of a request (RFC 8707 section 2). */
export function withResourceHint(error: unknown, resource: string | undefined): unknown {
  if (!isAgentAuthError(error)) return error;
  const isRejected = error.code === "invalid_target" && error.hint === undefined;
  if (!isRejected && !error.message.includes(ENTRA_MISMATCH)) return error;
  const hint =
    resource === NO_RESOURCE
      ? "the issuer needs a resource: set the option resource"
      : `the issuer rejects the resource ${quote(resource)}: with resource "none" none is sent, or set another one`;
  return withHint(error, hint, { action: "configure", option: "resource", value: resource });
}
