import { expect, it } from "vitest";
import * as brief from "../../src/login/brief-messages.js";
import { deviceText } from "../../src/login/device-code.js";
import * as messages from "../../src/login/messages.js";
import { detectEnvironment } from "../../src/login/platform.js";

const URL_OF_LOGIN = "https://login.example/authorize?client_id=c";
const REDIRECT = "http://127.0.0.1:49152/callback";
const RESOURCE = "https://mcp.example/mcp";
const environment = detectEnvironment({ env: { DISPLAY: ":0" }, platform: "linux", exists: () => false });
const prompt = {
  resource: RESOURCE,
  issuer: "https://issuer.example",
  authorizationEndpoint: URL_OF_LOGIN,
  tokenEndpoint: "https://other.example/token",
  signal: new AbortController().signal,
};
const device = { userCode: "ABCD-EFGH", verificationUri: "https://login.example/device", expiresInSeconds: 600 };
const verificationUriComplete = "https://login.example/device?user_code=ABCD-EFGH";
const paste = (isOnly: boolean, isHidden: boolean) => messages.pasteText(REDIRECT, { isOnly, isHidden });
const codeTaker = (promisesIss?: boolean) =>
  messages.codeTakerText(URL_OF_LOGIN, { tokenEndpoint: prompt.tokenEndpoint, promisesIss });

it.each<[string, string | undefined]>([
  ["the address of a login", messages.loginText(RESOURCE, URL_OF_LOGIN)],
  ["a code that another host gets", codeTaker()],
  ["a code that another host gets, which the callback names", codeTaker(true)],
  ["the two hosts of a login", messages.endpointsText(prompt)],
  ["pasting beside a listener", paste(false, false)],
  ["pasting unseen", paste(false, true)],
  ["pasting alone", paste(true, false)],
  ["waiting", messages.waitingText(300)],
  ["wrong callbacks", messages.probeText(REDIRECT)],
  ["an error without a state", messages.statelessErrorText("invalid_scope\u001b[31m")],
  ["a code for another device", deviceText(device as Parameters<typeof deviceText>[0])],
  ["the same in an address", deviceText({ ...device, verificationUriComplete } as Parameters<typeof deviceText>[0])],
  ["the other ways", brief.otherWaysText(URL_OF_LOGIN, REDIRECT, { environment, hasDeviceFlow: true })],
  ["a short link that no longer works", brief.linkWithdrawnText(URL_OF_LOGIN, REDIRECT)],
  ["waiting, in brief", brief.briefWaitingText(300)],
])("a user reads of %s", (_what, text) => {
  expect(text).toMatchSnapshot();
});

it("a user reads of the device flow only where the issuer has it", () => {
  expect(brief.otherWaysText(URL_OF_LOGIN, REDIRECT, { environment })).not.toContain("device");
});

it("a code for the host of the login page is worth no notice", () => {
  expect(messages.codeTakerText(URL_OF_LOGIN, { tokenEndpoint: "https://login.example/token" })).toBeUndefined();
  expect(messages.codeTakerText(URL_OF_LOGIN, {})).toBeUndefined();
});
