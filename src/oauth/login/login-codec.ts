import type { Readers } from "../model/codec.js";
import {
  CLIENT,
  decode,
  encode,
  ifPresent,
  readBoolean,
  readCount,
  readEach,
  readMembers,
  readNested,
  readNumber,
  readOptional,
  readOptionalBoolean,
  readOptionalStrings,
  readOptionalTexts,
  readRequiredSecret,
  readRequiredStrings,
  readSecret,
  readString,
  readStrings,
  readUrl,
  requireMembers,
  withSchema,
} from "../model/codec.js";
import type { ServerMetadata } from "../model/metadata.js";
import type { PreparedDeviceLogin, PreparedLogin } from "./authorization.js";

/** What is stored with a login between its two steps. */
export interface BetweenSteps {
  profile: string;
  /** Milliseconds from the first step until it expires. Default: that of the command. */
  ttlMs?: number | undefined;
  /** The flags of a login that is handed over, which its second step repeats. */
  handOver?: readonly string[] | undefined;
}

export type StoredLogin = BetweenSteps & ((PreparedLogin & CallbackWay) | (PreparedDeviceLogin & { flow: "device" }));

/** How the callback of a login between its steps comes in. */
export interface CallbackWay {
  flow?: "paste" | undefined;
  /** The address to listen at, where it is not the redirect address. */
  listensAt?: string | undefined;
}

export function encodeLogin(login: StoredLogin): string {
  return encode({ kind: login.flow === "device" ? "device-login" : "login", ...login });
}

/** The members of a login between its two steps, with its secrets, as a part of another JSON text. */
export function loginMembers(login: PreparedLogin & BetweenSteps): object {
  return withSchema({ kind: "login", ...login });
}

/** @throws CodecError */
export function decodeLogin(text: string): BetweenSteps & PreparedLogin & CallbackWay {
  return readMembers(decode(text, "login"), LOGIN);
}

/** A login from such members, which {@link loginMembers} returned before. @throws CodecError */
export function decodeMembers(members: unknown): ReturnType<typeof decodeLogin> {
  return readMembers(requireMembers(members, "login"), LOGIN);
}

/** A started login of either kind. @throws CodecError */
export function decodeStoredLogin(text: string): StoredLogin {
  return /^ *"kind": "device-login",?$/m.test(text)
    ? { ...readMembers(decode(text, "device-login"), DEVICE_LOGIN), flow: "device" }
    : decodeLogin(text);
}

const SERVER: Readers<ServerMetadata> = {
  ...readEach(readUrl, "issuer", "authorizationEndpoint", "tokenEndpoint"),
  namedIssuer: readOptional,
  ...readEach(
    readOptional,
    "registrationEndpoint",
    "introspectionEndpoint",
    "revocationEndpoint",
    "endSessionEndpoint",
  ),
  ...readEach(readOptional, "deviceAuthorizationEndpoint", "jwksUri"),
  ...readEach(readOptionalStrings, "scopesSupported", "grantTypesSupported", "tokenEndpointAuthMethods"),
  ...readEach(readOptionalStrings, "tokenEndpointSigningAlgorithms", "dpopSigningAlgorithms", "grantProfilesSupported"),
  ...readEach(readBoolean, "promisesIss", "takesClientIdDocuments"),
  url: readString,
};

const STARTED: Readers<BetweenSteps & Omit<PreparedDeviceLogin, "device" | "onSlowDown">> = {
  ...readEach(readString, "profile", "server"),
  ttlMs: readNumber,
  handOver: readOptionalStrings,
  account: readOptional,
  issuer: readNested(SERVER),
  client: readNested(CLIENT),
  scope: readRequiredStrings,
  resource: readString,
  overrides: readRequiredStrings,
  acceptedTokenType: readOptional,
  authorizationParams: readOptionalTexts,
  needsConsent: readOptionalBoolean,
  proofKey: readSecret,
};

const DEVICE_LOGIN: Readers<BetweenSteps & Omit<PreparedDeviceLogin, "onSlowDown">> = {
  ...STARTED,
  device: readNested({
    deviceCode: readRequiredSecret,
    userCode: readString,
    verificationUri: readUrl,
    verificationUriComplete: readOptional,
    ...readEach(readCount, "intervalSeconds", "expiresAt"),
  }),
};

const LOGIN: Readers<ReturnType<typeof decodeLogin>> = {
  ...STARTED,
  flow: (members, name) => (members[name] === "paste" ? "paste" : undefined),
  listensAt: ifPresent(readUrl),
  addedScope: readStrings,
  pending: readNested({
    ...readEach(readUrl, "authorizationUrl", "redirectUri"),
    state: readString,
    verifier: readRequiredSecret,
    nonce: readOptional,
  }),
};
