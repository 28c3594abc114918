import type { PolicyOption } from "../../remedy.js";
import type { IssuerMetadata, ServerMetadata } from "../model/metadata.js";
import { type OverrideContext, overridesFor } from "./overrides.js";

/** How the user logs in. */
export interface LoginFlowOptions {
  /** In a browser, or on another device. */
  flow?: "browser" | "device" | undefined;
  /** Whether the user is asked about endpoints of different origins. */
  confirmsEndpoints?: boolean | undefined;
}

/** The endpoint that a login begins at. */
export interface FirstEndpoint {
  /** Its field in the metadata. */
  field: string;
  address: string;
  /** What makes another origin harmless; to be read after the rule. */
  unless: string;
}

/**
 * The endpoint that a login begins at, if the token endpoint has another origin: the result of the login is sent there.
 * Undefined also if the callback names its issuer (RFC 9207).
 */
export function foreignFirstEndpoint(
  issuer: ServerMetadata,
  flow: LoginFlowOptions["flow"],
): FirstEndpoint | undefined {
  const first = firstEndpoint(issuer, flow);
  return first && new URL(first.address).origin !== new URL(issuer.tokenEndpoint).origin ? first : undefined;
}

function firstEndpoint(issuer: ServerMetadata, flow: "browser" | "device" | undefined): FirstEndpoint | undefined {
  if (flow === "device") {
    const address = issuer.deviceAuthorizationEndpoint;
    return address === undefined ? undefined : { field: "device_authorization_endpoint", address, unless: "" };
  }
  if (issuer.promisesIss) return undefined;
  const unless = ", unless authorization_response_iss_parameter_supported is true";
  return { field: "authorization_endpoint", address: issuer.authorizationEndpoint, unless };
}

/** The option without which a login at an issuer is refused before it begins. */
export function loginOption(
  issuer: IssuerMetadata | ServerMetadata,
  context: OverrideContext & LoginFlowOptions,
): PolicyOption | undefined {
  if (!("authorizationEndpoint" in issuer) || !foreignFirstEndpoint(issuer, context.flow)) return undefined;
  const option = "allowCrossOriginEndpoints";
  return context.confirmsEndpoints || overridesFor(issuer, context).includes(option) ? undefined : option;
}
