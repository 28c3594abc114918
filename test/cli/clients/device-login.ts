import type { StoredLogin } from "../../../src/oauth/login/login-codec.js";
import { Secret } from "../../../src/redact.js";
import { madeClient } from "../../helpers/grant.js";
import { serverMetadata } from "../../helpers/issuer.js";

/** A started login of which the user enters a code on another device. */
export const DEVICE_LOGIN: StoredLogin = {
  flow: "device",
  profile: "default",
  server: "https://mcp.example/mcp",
  account: undefined,
  issuer: serverMetadata(),
  client: madeClient(),
  scope: ["mcp"],
  resource: "https://mcp.example/mcp",
  overrides: [],
  proofKey: undefined,
  device: {
    deviceCode: new Secret("device-code"),
    userCode: "ABCD",
    verificationUri: "https://as.example/device",
    verificationUriComplete: undefined,
    intervalSeconds: 5,
    expiresAt: 0,
  },
};
