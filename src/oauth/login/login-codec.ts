import { clientOf } from "../model/codec.js";
import {
  address,
  boolean,
  count,
  decode,
  each,
  encode,
  membersOf,
  nested,
  number,
  object,
  optional,
  optionalStrings,
  type Reader,
  type Readers,
  read,
  requiredSecret,
  requiredStrings,
  secret,
  string,
  strings,
  versioned,
} from "../model/members.js";
import type { ServerMetadata } from "../model/metadata.js";
import type { PreparedDeviceLogin, PreparedLogin } from "./prepared-login.js";

/** What is stored with a login between its two steps. */
export interface BetweenSteps {
  /** The profile that it belongs to. */
  profile: string;
  /** Milliseconds from the first step until it expires. Default: that of the command. */
  lifeMs?: number | undefined;
}

/** The stored first step of a login. */
export type StartedLogin = BetweenSteps &
  ((PreparedLogin & { flow?: "paste" | undefined }) | (PreparedDeviceLogin & { flow: "device" }));

/** The text of a started login, with its secrets. */
export function encodeLogin(login: StartedLogin): string {
  return encode({ kind: login.flow === "device" ? "device-login" : "login", ...login });
}

/** The members of a login between its two steps, with its secrets, as a part of another JSON text. */
export function loginMembers(login: PreparedLogin & BetweenSteps): object {
  return versioned({ kind: "login", ...login });
}

/** @throws CodecError */
export function decodeLogin(text: string): BetweenSteps & PreparedLogin & { flow?: "paste" | undefined } {
  return read(decode(text, "login"), LOGIN);
}

/** A login from such members, which {@link loginMembers} returned before. @throws CodecError */
export function loginOf(members: unknown): ReturnType<typeof decodeLogin> {
  return read(membersOf(members, "login"), LOGIN);
}

/** A started login of either kind. @throws CodecError */
export function decodeStartedLogin(text: string): StartedLogin {
  return /^ *"kind": "device-login",?$/m.test(text)
    ? { ...read(decode(text, "device-login"), DEVICE_LOGIN), flow: "device" }
    : decodeLogin(text);
}

const client: Reader<PreparedLogin["client"]> = (members, name) => clientOf(object(members, name));

const SERVER: Readers<ServerMetadata> = {
  ...each(address, "issuer", "authorizationEndpoint", "tokenEndpoint"),
  namedIssuer: optional,
  ...each(optional, "registrationEndpoint", "introspectionEndpoint", "revocationEndpoint", "endSessionEndpoint"),
  ...each(optional, "deviceAuthorizationEndpoint", "jwksUri"),
  ...each(optionalStrings, "scopesSupported", "grantTypesSupported", "tokenEndpointAuthMethods"),
  ...each(optionalStrings, "tokenEndpointSigningAlgorithms", "dpopSigningAlgorithms"),
  ...each(boolean, "promisesIss", "takesClientIdDocuments"),
  url: string,
};

const STARTED: Readers<BetweenSteps & Omit<PreparedDeviceLogin, "device" | "onSlowDown">> = {
  ...each(string, "profile", "server"),
  lifeMs: number,
  account: optional,
  issuer: nested(SERVER),
  client,
  scope: requiredStrings,
  resource: string,
  overrides: requiredStrings,
  acceptedTokenType: optional,
  proofKey: secret,
};

const DEVICE_LOGIN: Readers<BetweenSteps & Omit<PreparedDeviceLogin, "onSlowDown">> = {
  ...STARTED,
  device: nested({
    deviceCode: requiredSecret,
    userCode: string,
    verificationUri: address,
    verificationUriComplete: optional,
    ...each(count, "intervalSeconds", "expiresAt"),
  }),
};

const LOGIN: Readers<ReturnType<typeof decodeLogin>> = {
  ...STARTED,
  flow: (members, name) => (members[name] === "paste" ? "paste" : undefined),
  addedScope: strings,
  pending: nested({
    ...each(string, "issuer", "state", "clientId"),
    ...each(address, "authorizationUrl", "redirectUri"),
    promisesIss: boolean,
    verifier: requiredSecret,
    scope: requiredStrings,
    ...each(optional, "resource", "nonce"),
  }),
};
