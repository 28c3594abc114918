import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { flagText } from "../../../src/cli/flags/flag-name.js";
import {
  cliHint,
  type HintContext,
  listTools,
  loginCommand,
  loginCommandWith,
  urlToPaste,
} from "../../../src/cli/runtime/hints.js";
import { AgentAuthError, type ErrorClass } from "../../../src/errors.js";
import { LOGIN_HINT } from "../../../src/oauth/grant/grant-requirements.js";
import type { ConfigureOption, ConfigureRemedy, PolicyOption, Remedy } from "../../../src/remedy.js";
import { ON_WINDOWS } from "../../helpers/systems.js";

const SERVER = "https://mcp.example/mcp";
const STRANGE = ["a; touch x #", "$(touch x)", "it's", "two words", "`id`", 'a"b', "\u202etxt"];

interface Given {
  code?: string;
  kind?: ErrorClass;
  hint?: string;
}

function hintOf(remedy: Remedy | undefined, { code = "x", kind = "auth", hint }: Given = {}, context?: HintContext) {
  return cliHint(new AgentAuthError(code, "m", { class: kind, hint, remedy }), context).hint;
}

const trusting = (flag: string) => `if you trust this server, ${flag} disables this check for it`;

const ALLOW: Readonly<Record<PolicyOption, string>> = {
  acceptTokenType: trusting("--accept-token-type"),
  allowCrossOriginEndpoints: trusting("--allow-cross-origin-endpoints"),
  allowCrossOriginMetadata: trusting("--allow-cross-origin-metadata"),
  allowMissingPkceMetadata: trusting("--allow-missing-pkce-metadata"),
  allowNonLoopback: "use 127.0.0.1, or set allowNonLoopback in the file of --options",
  allowPrivateNetwork: trusting("--allow-private-network"),
  dpop: trusting("--dpop auto"),
  resource:
    'the token may be valid for every server below "undefined": if you trust all of them, --resource accepts that',
  legacyDiscovery:
    "a server of the MCP revision 2025-03-26 is reached with --legacy-discovery; agentauth discover <mcp_url> shows what was requested",
};

type Case = Given & {
  details?: {
    value?: string;
    clientId?: string;
    clientIssuer?: string;
    also?: ConfigureRemedy["also"];
    profile?: string;
  };
};

const BY_HAND =
  "register a client with the issuer by hand, with the redirect address http://127.0.0.1:28461/callback (--redirect-host, --redirect-port and --redirect-path set another), and log in with it (its secret in AGENTAUTH_CLIENT_SECRET): agentauth login <mcp_url> --client-id <client_id>";

/** Each option in each of its uses; the compiler misses an option that has none. */
const CONFIGURE: Readonly<Record<ConfigureOption, readonly Case[]>> = {
  account: [
    { kind: "usage", hint: "name one" },
    { kind: "store", hint: "move it away: mv a b" },
  ],
  apiToken: [
    { code: "not_authenticated", hint: "give an API token" },
    { code: "bad_authtoken", hint: "give one" },
    { code: "http_error", hint: "give a valid API token" },
  ],
  assertion: [{ hint: "the assertion has to be current" }],
  browser: [{}],
  ca: [{}],
  client: [
    { code: "no_registration" },
    { code: "no_registration", details: { clientIssuer: "https://as.example" } },
    { code: "invalid_client", details: { also: "clientMetadataUrl" } },
    { code: "http_error", details: { also: "clientName" } },
  ],
  clientCertificate: [{}],
  clientId: [
    { code: "invalid_client" },
    { code: "issuer_changed" },
    { code: "invalid_client", details: { clientId: "c 1" } },
    { code: "unauthorized_client", hint: "it must be allowed" },
  ],
  clientName: [{}],
  clientSecret: [
    { code: "invalid_client", details: { clientId: "c1" } },
    { code: "invalid_client", details: { clientId: "c1", also: "idp" } },
    { code: "usage", details: { also: "privateKey" } },
    { code: "usage" },
  ],
  flow: [{ code: "login_required" }, { code: "no_device_flow" }, { code: "usage" }],
  idToken: [{ hint: "log in again, and give its new id token" }],
  idpTokenEndpoint: [{ code: "usage" }],
  issuer: [
    { code: "wrong_audience" },
    { code: "issuer_mismatch" },
    { code: "issuer_changed" },
    { code: "issuer_changed", details: { value: "https://as.example/{tenant}" } },
    { code: "issuer_unbound" },
    { code: "issuer_unbound", details: { value: "https://as.example/a%20b", profile: "default" } },
    { code: "issuer_unbound", details: { value: "https://as.example/a-b", profile: "default" } },
    { code: "issuer_unbound", details: { value: `https://as.example/${"a".repeat(500)}`, profile: "my work" } },
  ],
  maxPages: [{}],
  pageSize: [{ hint: "ask for smaller pages" }],
  privateKey: [{ code: "invalid_client", details: { clientId: "c1" } }, { code: "usage" }],
  redirectHost: [{ details: { value: "localhost" } }],
  redirectPort: [{ hint: "end the program, or choose another" }],
  resource: [
    { hint: "in words of the SDK", details: { value: "https://mcp.example" } },
    { code: "invalid_target", details: { value: "none" } },
  ],
  sorting: [{}],
  scope: [{ hint: "ask for scopes that the issuer gives this client" }],
};

describe("the hint for a remedy", () => {
  it.each(Object.entries(ALLOW))("that is to allow %s", (option, expected) => {
    expect(hintOf({ action: "allow", option: option as PolicyOption }, { hint: "in words of the SDK" })).toBe(expected);
  });

  it("that is to configure an option", () => {
    const hints = Object.entries(CONFIGURE).flatMap(([option, cases]) =>
      cases.map(({ details, ...given }) => {
        const remedy: Remedy = { action: "configure", option: option as ConfigureOption, ...details };
        return `${[option, given.code, ...Object.values(details ?? {})].filter(Boolean).join(" ")}: ${hintOf(remedy, given)}`;
      }),
    );
    expect(hints).toMatchSnapshot();
  });

  it("that is a token of a machine grant", () => {
    const none = { action: "token" } as const;
    const named = { action: "token", grant: "client_credentials" } as const;
    expect(hintOf(named, { kind: "usage" })).toBe(
      "a token comes by: agentauth token <mcp_url> --grant client-credentials",
    );
    expect(hintOf(none, { kind: "usage" })).toBe("a token comes by: agentauth token <mcp_url> --grant <grant>");
  });

  it("that is to inspect something", () => {
    const discovery = { action: "inspect", subject: "discovery" } as const;
    const grants = { action: "inspect", subject: "grants" } as const;
    expect(hintOf(discovery)).toBe("agentauth discover <mcp_url> shows every requested address");
    expect(hintOf(grants, { hint: "it does not do this" })).toBe(
      "it does not do this; agentauth discover <mcp_url> shows which grants it names",
    );
    expect(hintOf({ action: "inspect", subject: "logins" })).toBe("agentauth status shows where they should be");
    expect(hintOf({ action: "inspect", subject: "tables" }, { hint: "run storeSql()" })).toBe(
      "run the SQL that agentauth store sql prints on this database",
    );
    expect(hintOf({ action: "inspect", subject: "clock" })).toBe(
      "agentauth doctor <mcp_url> shows whether the clock of this machine is right",
    );
  });

  it("that is a login is the command, after what the error says beside it", () => {
    const login = { action: "login", server: SERVER } as const;
    expect(hintOf(login, { hint: LOGIN_HINT })).toBe(`agentauth login ${SERVER}`);
    expect(hintOf(login)).toBe(`agentauth login ${SERVER}`);
    expect(hintOf(login, { hint: "wait a minute" })).toBe(`wait a minute: agentauth login ${SERVER}`);
  });

  it("does not name the command that ran", () => {
    const discover = { command: "discover" };
    expect(hintOf({ action: "inspect", subject: "discovery" }, { hint: "discover()" }, discover)).toBeUndefined();
    expect(hintOf({ action: "allow", option: "legacyDiscovery" }, {}, discover)).toBe(
      "a server of the MCP revision 2025-03-26 is reached with --legacy-discovery",
    );
  });

  it.each<Remedy>([{ action: "retry" }, { action: "resume", offset: 3 }])(
    "is what the error says, for %j",
    (remedy) => {
      expect(hintOf(remedy, { hint: "call again later" })).toBe("call again later");
      expect(hintOf(remedy, { code: "timeout" })).toMatch(/--timeout/);
      expect(hintOf(remedy)).toBeUndefined();
    },
  );

  it("says what a command that ends does about a token that is not saved", () => {
    const given = { code: "grant_not_saved", hint: "call again from this process" };
    expect(hintOf({ action: "retry" }, given)).toBe(
      "agentauth tries to store it for half a minute before it exits; then run the command again",
    );
    expect(hintOf({ action: "login", server: SERVER }, given)).toContain(`agentauth login ${SERVER}`);
  });

  it("is what the error says, for a remedy that this version does not know", () => {
    for (const option of ["other", "constructor"]) {
      expect(hintOf({ action: "configure", option } as unknown as Remedy, { hint: "as it says" })).toBe("as it says");
    }
    expect(hintOf({ action: "other" } as unknown as Remedy, { hint: "as it says" })).toBe("as it says");
    expect(hintOf({ action: "inspect", subject: "other" } as unknown as Remedy)).toBeUndefined();
  });

  it("takes the place of the remedy, so that nothing makes another one from it", () => {
    const error = cliHint(
      new AgentAuthError("login_required", "m", { class: "auth", remedy: { action: "login", server: SERVER } }),
    );
    expect(error.remedy).toBeUndefined();
    const later = new AgentAuthError("x", "m", { class: "auth", hint: "later", remedy: { action: "retry" } });
    expect([cliHint(later).hint, cliHint(later).remedy]).toEqual(["later", undefined]);
    expect(cliHint(error, { isForAgent: true })).toBe(error);
  });
});

describe("an option of the SDK", () => {
  it("has the name of its flag, and its value as one word of a shell", () => {
    expect(flagText("sameOriginEndpoints")).toBe("--same-origin-endpoints");
    expect(flagText("redirectHost", "localhost")).toBe("--redirect-host localhost");
    expect(flagText("profile", "it's me")).toBe("--profile 'it'\\''s me'");
  });
});

/** What a shell makes of a command: its words. */
function words(command: string | undefined): string[] {
  const program = `agentauth() { for word in "$@"; do printf '%s\\n' "$word"; done; }; ${command}`;
  return execFileSync("sh", ["-c", program], { encoding: "utf8" }).trimEnd().split("\n");
}

describe.skipIf(ON_WINDOWS)("the command that logs in", () => {
  const login = { action: "login", server: SERVER } as const;

  it.each(STRANGE)("is for the profile and the account that are named, and for the shell one word: %j", (name) => {
    expect(words(hintOf({ ...login, profile: name }))).toEqual(["login", SERVER, "--profile", name]);
    expect(words(hintOf({ ...login, account: name }))).toEqual(["login", SERVER, "--account-hint", name]);
  });

  it("has scopes as one word, and none that read as a command", () => {
    expect(words(hintOf({ ...login, scope: "a files:read" }))).toEqual(["login", SERVER, "--scope", "a files:read"]);
    for (const scope of ["a $(touch)", "$(id)", "`id`", "a;id", "a'b", "--help", "a|id"]) {
      expect(words(hintOf({ ...login, scope }))).toEqual(["login", SERVER]);
    }
  });
});

describe("an issuer that a server names", () => {
  const expectIssuer = (value: string, url?: string) => {
    const remedy = { action: "configure", option: "issuer", value } as const;
    const error = new AgentAuthError("issuer_mismatch", "m", { class: "refused", url, remedy });
    return cliHint(error, { server: SERVER }).hint;
  };
  const ADVICE = "if you trust this server, and its issuer is the right one, add --issuer";
  const OWN = "https://as.example/.well-known/openid-configuration";

  it("is in a command to paste", () => {
    for (const url of [undefined, OWN]) {
      expect(expectIssuer("https://as.example", url)).toBe(
        `${ADVICE} https://as.example to expect that issuer for it: agentauth login ${SERVER} --issuer https://as.example`,
      );
    }
    expect(expectIssuer("https://as.example/{id}", OWN)).toContain(` --issuer 'https://as.example/{id}'`);
  });

  it("comes without a host where one of the addresses is none", () => {
    for (const [issuer, claim] of [
      ["https://as.example", "nowhere"],
      ["nowhere", "https://as.example"],
    ] as const) {
      const hint = expectIssuer(issuer, claim);
      expect(hint).toContain(issuer === "nowhere" ? "then go to as.example" : `${ADVICE} https://as.example to expect`);
      if (issuer !== "nowhere") expect(hint).not.toContain("then go to");
    }
  });

  it("comes with the host that its login goes to, if the document that has it is of another one", () => {
    expect(expectIssuer("https://as.example", "https://evil.example:8443/meta")).toBe(
      `${ADVICE} https://as.example to expect that issuer for it; the login and its tokens then go to evil.example:8443, which says that it is this issuer, unless the issuer publishes its own metadata: agentauth login ${SERVER} --issuer https://as.example`,
    );
  });

  it.each([
    "https://as.example/&calc.exe&",
    "https://as.example/%PATH%",
    "https://as.example/'$(id)",
    "https://as.example/a b",
    'https://as.example/"|calc',
    `https://as.example/${"a".repeat(500)}`,
    "-x://as.example",
  ])("is not in a command if a shell of any system may act on it: %s", (value) => {
    expect(expectIssuer(value)).toBe(`${ADVICE} <url> to expect that issuer for it`);
    const resource = hintOf({ action: "allow", option: "resource", value }, {}, { server: SERVER });
    expect(resource?.endsWith("if you trust all of them, --resource <url> accepts that")).toBe(true);
    const remedy = { action: "configure", option: "resource", value } as const;
    expect(loginCommandWith(SERVER, [remedy])).toBe(`agentauth login ${SERVER} --resource <url>`);
  });
});

describe("the command that disables checks", () => {
  const server = SERVER;
  const LOGIN = `agentauth login ${SERVER}`;
  const also = ["allowMissingPkceMetadata"] as const;

  it("is whole where the server is known, with the flags that were given", () => {
    const context = { server, flags: [["--proxy", "http://p.example:1"], ["--legacy-discovery"]] };
    expect(hintOf({ action: "allow", option: "allowMissingPkceMetadata" }, {}, context)).toBe(
      `${trusting("--allow-missing-pkce-metadata")}: ${LOGIN} --proxy http://p.example:1 --legacy-discovery --allow-missing-pkce-metadata`,
    );
    expect(hintOf({ action: "allow", option: "legacyDiscovery", also }, {}, { server })).toBe(
      `if you trust this server, --legacy-discovery and --allow-missing-pkce-metadata disable these checks for it: ${LOGIN} --legacy-discovery --allow-missing-pkce-metadata`,
    );
    expect(hintOf({ action: "allow", option: "legacyDiscovery" }, {}, { server })).toBe(
      `a server of the MCP revision 2025-03-26 is reached with --legacy-discovery: ${LOGIN} --legacy-discovery`,
    );
  });

  it("has the client that is registered by hand, with its redirect address", () => {
    const remedy = { action: "allow", option: "allowMissingPkceMetadata", clientIssuer: "https://as.example" } as const;
    const own = [
      ["--redirect-host", "localhost"],
      ["--redirect-path", "/oauth/cb"],
    ];
    const hint = (flags: string[][]) => hintOf(remedy, {}, { server, flags }) ?? "";
    expect(hint([])).toBe(
      `${trusting("--allow-missing-pkce-metadata")}; ${BY_HAND.replace("<mcp_url>", server)} --issuer https://as.example --allow-missing-pkce-metadata --redirect-port 28461`,
    );
    expect(hint(own)).toContain("address http://localhost:28461/oauth/cb (");
    const fixed = hint([["--redirect-port", "3000"]]);
    expect(fixed).toContain("address http://127.0.0.1:3000/callback (");
    expect(fixed).toContain("--redirect-port 3000 --client-id <client_id>");
    expect(fixed).not.toContain("28461");
  });

  it("names each flag where no user logs in", () => {
    expect(hintOf({ action: "allow", option: "legacyDiscovery", also })).toBe(
      "if you trust this server, --legacy-discovery and --allow-missing-pkce-metadata disable these checks for it",
    );
  });

  it("has what each remedy names", () => {
    const remedies: Remedy[] = [
      { action: "configure", option: "client" },
      { action: "configure", option: "redirectHost", value: "localhost" },
      { action: "allow", option: "dpop" },
      { action: "configure", option: "account" },
      { action: "retry" },
    ];
    expect(loginCommandWith(SERVER, remedies)).toBe(
      `${LOGIN} --client-id <client_id> --redirect-host localhost --dpop auto`,
    );
  });
});

it("names the command that works at a server without a login", () => {
  expect(hintOf({ action: "connect", server: `${SERVER}?a=b c` })).toBe(
    `agentauth mcp tools '${SERVER}?a=b c' works without one`,
  );
});

describe("the hint of a login", () => {
  const login = { action: "login", server: SERVER } as const;
  const flags = [
    ["--proxy", "p"],
    ["--client-id", "c"],
  ];
  const AGAIN = "--login-timeout <seconds> gives more time";

  it.each<[string, Remedy, HintContext | undefined, string]>([
    [
      "that took too long",
      { ...login, option: "loginTimeoutMs" },
      { flags },
      `run agentauth login ${SERVER} again; ${AGAIN}`,
    ],
    [
      "at an identity provider that took too long",
      { ...login, option: "loginTimeoutMs", idp: true },
      { flags },
      `run agentauth login --idp ${SERVER} --proxy p again; ${AGAIN}`,
    ],
    [
      "whose scopes were refused",
      { ...login, option: "scope" },
      { flags },
      `agentauth login ${SERVER} --scope "<scopes>" asks for others`,
    ],
    [
      "that needs a client",
      { ...login, option: "clientId" },
      { flags: [["--proxy", "p"]] },
      `name one with --client-id, or log in first: agentauth login ${SERVER} --proxy p`,
    ],
    ["of an agent", login, { isForAgent: true }, `agentauth login ${SERVER} --no-wait --json`],
  ])("%s", (_what, remedy, context, expected) => {
    expect(hintOf(remedy, {}, context)).toBe(expected);
  });

  it.each([
    [{ dpop: "auto" }, "--dpop auto"],
    [{ resourceMetadata: "https://mcp.example/meta" }, "--resource-metadata https://mcp.example/meta"],
    [{ resourceMetadata: "https://mcp.example/$(id)" }, "--resource-metadata <url>"],
    [{ scope: "" }, ""],
    [{ scope: "a.b:c/d-e" }, "--scope a.b:c/d-e"],
    [{ profile: "work", account: "ann" }, "--profile work --account-hint ann"],
    [{ authorizationParams: { a: "1", b: "2" } }, "--authorize-param a=1 --authorize-param b=2"],
  ] as const)("names what a login cannot find out: %j", (more, words) => {
    expect(loginCommand({ ...login, ...more })).toBe(`agentauth login ${SERVER} ${words}`.trimEnd());
  });

  it("has each flag once, and each parameter of the request", () => {
    const given = [
      ["--scope", "x"],
      ["--authorize-param", "a=2"],
      ["--authorize-param", "b=3"],
      ["--proxy", "p"],
    ];
    const remedy = { ...login, scope: "yy", authorizationParams: { a: "1" } };
    expect(loginCommand(remedy, { flags: given })).toBe(
      `agentauth login ${SERVER} --scope yy --authorize-param a=1 --authorize-param b=3 --proxy p`,
    );
    const added: Remedy[] = [
      { action: "configure", option: "redirectHost", value: "localhost" },
      { action: "allow", option: "legacyDiscovery" },
    ];
    expect(
      loginCommandWith(SERVER, added, {
        flags: [
          ["--redirect-host", "127.0.0.1"],
          ["--proxy", "p"],
        ],
      }),
    ).toBe(`agentauth login ${SERVER} --proxy p --redirect-host localhost --legacy-discovery`);
  });

  it("has at an identity provider no flag that is for a server", () => {
    const names =
      "account-hint client-id client-secret-file dpop issuer private-key resource resource-metadata scope trust-named-issuer";
    const given = [...names.split(" ").map((name) => [`--${name}`, "x"]), ["--proxy", "p"], ["--idp-client-id", "i"]];
    expect(loginCommand({ ...login, idp: true }, { flags: given })).toBe(
      `agentauth login --idp ${SERVER} --proxy p --idp-client-id i`,
    );
    const words = given.flat().join(" ");
    expect(loginCommand(login, { flags: given })).toBe(`agentauth login ${SERVER} ${words}`);
  });

  it("has what a remedy names beside a login", () => {
    const remedy = {
      action: "allow",
      option: "dpop",
      login: { scope: "a", resourceMetadata: "https://mcp.example/m" },
    };
    expect(loginCommandWith(SERVER, [remedy as Remedy])).toBe(
      `agentauth login ${SERVER} --dpop auto --scope a --resource-metadata https://mcp.example/m`,
    );
  });
});

it.each([
  ["https://a.example/b-c_d.e~f@g:1/{h}[i]", true],
  ["http://a.example", true],
  [`https://a.example/${"x".repeat(500 - 18)}`, true],
  [`https://a.example/${"x".repeat(500 - 17)}`, false],
  ["ftp://a.example", false],
  ["x https://a.example", false],
  ["https://a.example/?b=c", false],
  ["https://a.example/b\nc", false],
])("a URL of a server is in a command to paste unless a shell acts on it: %j", (url, isPasted) => {
  expect(urlToPaste(url)).toBe(isPasted ? url : "<url>");
});

it("the command that lists tools names the server as one word", () => {
  expect(listTools("https://a.example/$x")).toBe("agentauth mcp tools 'https://a.example/$x'");
});

describe("the hint where the library has none", () => {
  const later = "call again later, or allow more attempts with --retries <n>";

  it.each<[string, ErrorClass, string | undefined]>([
    ["timeout", "unavailable", "--timeout <seconds> allows more time, --retries <n> more attempts"],
    [
      "proxy_failed",
      "unavailable",
      "check --proxy, or HTTPS_PROXY in the environment; NO_PROXY names hosts to reach without it",
    ],
    ["store_unavailable", "unavailable", "call again later; agentauth doctor examines the store"],
    [
      "grant_not_saved",
      "store",
      "agentauth tries to store it for half a minute before it exits; then run the command again",
    ],
    ["list_changed", "partial", "run the command again; without --strict a list that changes is reported as a warning"],
    ["server_error", "unavailable", later],
    ["constructor", "unavailable", later],
    ["constructor", "remote", undefined],
  ])("for %s (%s)", (code, kind, expected) => {
    expect(hintOf(undefined, { code, kind })).toBe(expected);
    expect(hintOf(undefined, { code, kind, hint: "as it says" })).toBe("as it says");
  });
});

describe("a placeholder of a hint", () => {
  const hint = "see <mcp_url>, <host>, <other> and <constructor>";
  const filled = (operands: HintContext["operands"]) => hintOf(undefined, { hint }, operands && { operands });

  it.each<[HintContext["operands"], string]>([
    [undefined, hint],
    [{ url: SERVER, host: "cursor", other: "x" }, `see ${SERVER}, cursor, <other> and <constructor>`],
    [{ url: "node", host: "-x" }, "see <mcp_url>, -- -x, <other> and <constructor>"],
    [{ url: "https://a b", host: ["a"] }, "see 'https://a b', <host>, <other> and <constructor>"],
    [{ url: `${SERVER}?secret`, host: "u:p@h" }, hint],
    [{ url: `${SERVER}#secret` }, hint],
  ])("is the operand that was typed, unless that may have a secret: %j", (operands, expected) => {
    expect(filled(operands)).toBe(expected);
  });
});
