import { type EndpointsPrompt, formatSeconds } from "../oauth/login/login-method.js";
import { escapeText, quote } from "../redact.js";

/** How texts for the user spell an option: a program with settings or flags of its own has other names. */
export type OptionText = (
  option: "authorizationParams" | "flow" | "redirectHost" | "redirectPath" | "sameOriginEndpoints",
  value?: string,
) => string;

export const sdkOption: OptionText = (option, value) => (value === undefined ? option : `${option}: "${value}"`);

/** What a terminal can show of a login beside text. */
export interface LoginDisplay {
  /** Prints an address of this machine on a line of its own, as a hyperlink where the terminal has them. */
  link(url: string): void;
  /** Draws a QR code; false where the terminal cannot show it. */
  qrCode(text: string): Promise<boolean>;
}

/** Where to log in. The host is repeated in ASCII, because the user should check it. */
export function loginText(resource: string, url: string): string {
  return [
    `To log in to ${escapeText(resource)}, open this address (at ${new URL(url).host}):`,
    "",
    `  ${escapeText(url)}`,
    "",
  ].join("\n");
}

/** What an MCP server wants its user to open, and in which words. */
export function addressText({ server, url, message }: { server: string; url: string; message: string }): string {
  return [
    `${escapeText(server)} needs you to open this address (at ${new URL(url).host}):`,
    "",
    `  ${escapeText(url)}`,
    "",
    ...(message === "" ? [] : [`It says: ${quote(message, 500)}`]),
  ].join("\n");
}

/** The issuer's part in a login. */
export interface CodeRecipient {
  /** Where the authorization code is sent. */
  tokenEndpoint?: string | undefined;
  /** Whether the authorization server names its issuer in the callback (RFC 9207). */
  promisesIss?: boolean | undefined;
}

/**
 * A notice where the host that gets the authorization code is not the one that the user logs in at; else undefined. A
 * server may name the login page of an honest issuer and take the code for itself (RFC 9207 section 1).
 */
export function codeTakerText(
  url: string,
  { tokenEndpoint, promisesIss }: CodeRecipient,
  optionText: OptionText = sdkOption,
): string | undefined {
  if (tokenEndpoint === undefined || new URL(tokenEndpoint).origin === new URL(url).origin) return undefined;
  const { host } = new URL(tokenEndpoint);
  const notice = `The login at ${new URL(url).host} is handed to ${host}, which issues the token.`;
  if (promisesIss === true) return notice;
  return [
    `warning: ${notice}`,
    "Nothing proves that the two belong together.",
    `Log in only if you trust ${host} with it.`,
    `${optionText("sameOriginEndpoints")} refuses such servers.`,
  ].join("\n");
}

/** Names both origins of a login that is handed over, and asks whether they belong together. */
export function endpointsText({ resource, issuer, authorizationEndpoint, tokenEndpoint }: EndpointsPrompt): string {
  const [from, to] = [new URL(authorizationEndpoint).origin, new URL(tokenEndpoint).origin];
  return [
    `The login for ${escapeText(resource)}`,
    `begins at ${from} and is handed to ${to}, which issues the token.`,
    `Only the issuer ${escapeText(issuer)} says that the two belong together.`,
    `If you do not know ${to}, answer no: it could use your login at ${from} for itself.`,
    "A yes is remembered for this issuer.",
    "Continue?",
  ].join("\n");
}

/** How to finish by hand. */
export function pasteText(redirectUri: string, how: { isOnly: boolean; isHidden: boolean }): string {
  return [
    how.isOnly
      ? `After the login the browser ends up at ${redirectUri},\nwhere nothing answers: that is expected.`
      : `If the browser ends up at ${redirectUri} and cannot reach it:`,
    `${how.isOnly ? "Copy" : "copy"} the whole address from its address bar,`,
    `paste it here${how.isHidden ? " (it is not shown)" : ""} and press Enter.`,
    "Never paste that address anywhere else: anyone who has it may log in as you.",
  ].join("\n");
}

export const BROWSER_OPENED = "Your browser should open now.";
export const BROWSER_FAILED = "No browser could be started: open the address yourself.";

/** What to do at a page that users may not pass, where the login forces a consent. */
export function consentText(optionText?: OptionText): string {
  const option = optionText?.("authorizationParams", "prompt=") ?? 'authorizationParams: { prompt: "" }';
  return `If the page wants an approval that you cannot give, cancel the login, and log in with ${option}.`;
}

/** How long the login waits. */
export function waitingText(seconds: number): string {
  return `Waiting for the login (${formatSeconds(seconds)}; Ctrl-C cancels it).`;
}

/** Where the callback must come in, where that is not the redirect address. */
export function listeningText(redirectUri: string, listensAt: string): string {
  return [
    `After the login the browser goes to ${escapeText(redirectUri)}.`,
    `This program listens at ${listensAt} of this machine alone: requests must be forwarded there.`,
  ].join("\n");
}

/** Names both addresses of a callback that came to another path. */
export function otherPathText(path: string, listensAt: string, optionText: OptionText = sdkOption): string {
  return [
    `warning: the response of the issuer came to the path ${quote(path)}, but this login waits for it at ${listensAt}.`,
    `It is ignored. ${optionText("redirectPath")} sets the path.`,
  ].join("\n");
}

/** Warns that something sends wrong callbacks. */
export function probeText(listensAt: string): string {
  return [
    `warning: something on this computer, or a web page, is probing port ${new URL(listensAt).port}:`,
    "50 wrong callbacks were rejected. The login continues.",
  ].join("\n");
}

/** Names an error that came without a state: it changes nothing, and may be why no other callback comes. */
export function statelessErrorText(error: string): string {
  return [
    `warning: the browser brought the error ${quote(error)} without the state of this login.`,
    "Any web page can send that, so it is ignored. If your login page shows this error, press Ctrl-C.",
  ].join("\n");
}
