import { AgentClient, type AgentClientOptions } from "../../../src/oauth/agent.js";
import { grantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { fileStore } from "../../../src/store/file/file.js";
import { browse, type Callback, cookieHeader, SECRET } from "../../oauth/login/web-support.js";
import { type HostileCase, UP_TO_AUTHORIZATION, WHOLE_LOGIN } from "../case.js";
import type { Kit } from "../kit/kit.js";

const clientOf = (kit: Kit, profile: string, options: Partial<AgentClientOptions> = {}) =>
  new AgentClient({ store: fileStore(kit.home), profile, ...options });

/** A login of a user, up to the callback. */
const login = (kit: Kit, profile: string, options?: Partial<AgentClientOptions>) =>
  browse(clientOf(kit, profile, options), kit.mcp.url);

const withParameter = ({ address, cookie }: Callback, name: string, value: string) => {
  const changed = new URL(address);
  changed.searchParams.set(name, value);
  return new Request(changed, { headers: { cookie: cookieHeader(cookie) } });
};

const refused = {
  result: "refused; the code is not sent, nothing is stored",
  outcome: "refused",
  requests: UP_TO_AUTHORIZATION,
  store: "logins",
} as const;

/** The login of a second user registers no second client. */
const twoLogins = {
  times: { "as POST /pool/register": 1 },
  requests: [...UP_TO_AUTHORIZATION, ...UP_TO_AUTHORIZATION.filter((one) => !/POST \/pool\/register$/.test(one))],
} as const;

/** The callbacks of web apps: library only, since the command line is no web app. */
export const webLogin: readonly HostileCase[] = [
  {
    ...refused,
    id: "Z9a",
    input: "a web app: a callback in another browser than the one that started the login",
    code: "browser_mismatch",
    async call(kit) {
      const { address } = await login(kit, "alice");
      return clientOf(kit, "mallory").handleCallback(address);
    },
  },
  {
    ...refused,
    id: "Z9b",
    input: "a web app: a callback with its cookie, in the session of another user",
    outcome: "auth",
    code: "login_not_found",
    async call(kit) {
      const { request } = await login(kit, "alice");
      return clientOf(kit, "mallory").handleCallback(request);
    },
  },
  {
    ...refused,
    id: "Z9c",
    input: "a web app: a callback with the sealed login of another user",
    code: "bad_saved_login",
    async call(kit) {
      const loginSecret = SECRET;
      const { saved } = await login(kit, "mallory", { loginSecret });
      const { request } = await login(kit, "alice", { loginSecret });
      return clientOf(kit, "alice", { loginSecret }).handleCallback(request, { saved });
    },
    ...twoLogins,
  },
  {
    ...refused,
    id: "Z9h",
    input: "a web app: a callback with the sealed login of a user of the same name of another tenant",
    code: "bad_saved_login",
    async call(kit) {
      const store = grantStore(memoryDriver(), { seal: "none" });
      const agents = new AgentClient({ store, loginSecret: SECRET });
      const [acme, other] = ["acme", "other"].map((tenant) => agents.for({ tenant, user: "alice" }));
      if (acme === undefined || other === undefined) throw new Error("there are two");
      const { saved, request } = await browse(acme, kit.mcp.url);
      return other.handleCallback(request, { saved });
    },
  },
  {
    ...refused,
    id: "Z9i",
    input: "a web app: the same, where each tenant has a client of its own",
    code: "bad_saved_login",
    async call(kit) {
      const driver = memoryDriver();
      const clientOfTenant = (tenant?: string) =>
        new AgentClient({ store: grantStore(driver, { seal: "none", tenant }), loginSecret: SECRET, profile: "alice" });
      const { saved, request } = await browse(clientOfTenant("acme"), kit.mcp.url);
      return clientOfTenant().handleCallback(request, { saved });
    },
  },
  {
    ...refused,
    id: "Z9d",
    input: "a web app: a callback with a foreign state and an error with text",
    code: "browser_mismatch",
    async call(kit) {
      const request = withParameter(await login(kit, "alice"), "state", "foreign");
      return clientOf(kit, "alice").handleCallback(`${request.url}&error=access_denied&error_description=PLANTED`, {
        cookie: request.headers.get("cookie") ?? "",
      });
    },
  },
  {
    ...refused,
    id: "Z9e",
    input: "a web app: a callback of another issuer",
    code: "iss_mismatch",
    async call(kit) {
      const request = withParameter(await login(kit, "alice"), "iss", kit.other.issuer);
      return clientOf(kit, "alice").handleCallback(request);
    },
  },
  {
    ...refused,
    id: "Z9f",
    input: "a web app: a callback that is sent again, to another process",
    result: "refused; the code is sent once",
    outcome: "auth",
    code: "login_not_found",
    requests: WHOLE_LOGIN,
    store: "any",
    async call(kit) {
      const { request } = await login(kit, "alice");
      await clientOf(kit, "alice").handleCallback(request);
      return clientOf(kit, "alice").handleCallback(request);
    },
  },
  {
    ...refused,
    id: "Z9g",
    input: "a web app: a page to return to on another host, spelled with backslashes",
    result: "refused before any request",
    outcome: "usage",
    code: "usage",
    requests: [],
    call: (kit) => {
      const redirectUri = "https://app.example/oauth/callback";
      return clientOf(kit, "alice").startLogin(kit.mcp.url, { redirectUri, returnTo: "/\\evil.example" });
    },
  },
];
