// Who may import whom: bin > cli > { node, sandbox, mcp, broker } > profile > { login, http/node, store } >
// { api, oauth, resource-server } > telemetry > http > errors, error-codes, remedy, redact. test/import-rules.test.ts shows of each rule that it finds what it forbids.

/** `errors.ts` is made of the two after it. */
const BASE = "^src/(errors|error-codes|remedy|redact)\\.ts$";
const HTTP = "^src/http/(?!node/)";
/** Requests over node:http. */
const HTTP_NODE = "^src/http/node/";
/** Events: the API of OpenTelemetry is for what is built on them. */
const TELEMETRY = "^src/telemetry/";
const FEATURES = "^src/(api|oauth|resource-server)/";
const RUNTIME = "^src/((profile|sandbox|mcp|broker|login|http/node|store)/|node\\.ts$)";
/** What differs between operating systems. */
const PLATFORM = "^src/platform\\.ts$";
/** The packages that are bundled as they were published, each in a file of its own, reached by `#packages/*`. */
const BUNDLED = "^src/packages/";
/** What needs Node. */
const OF_NODE = [
  "^src/((profile|sandbox|mcp|broker|login|http/node|packages|cli)/|(node|platform)\\.ts$)",
  "^src/store/(private|leases|file|keychain)/",
];

/** Each of these packages is known in one place, so that it can be exchanged there. */
const PACKAGES = {
  commander: "^src/cli/",
  "@opentelemetry/api": "^src/telemetry/otel\\.ts$",
  "cli-table3": BUNDLED,
  "cross-spawn": BUNDLED,
  "openapi-fetch": "^src/api/client\\.ts$",
  oauth4webapi: "^src/oauth/",
  open: BUNDLED,
  "oidc-provider": BUNDLED,
  "jsonc-parser": BUNDLED,
};

/** The folders of the sandbox, each with those that it may import; sandbox.ts and what is beside it import all of them. */
const SANDBOX = {
  http: "http",
  data: "data|http",
  faults: "faults|data|http",
  management: "management|faults|data|http",
  oauth: "oauth|faults|data|http",
  mcp: "mcp|oauth|faults|data|http",
};

/** The same of the store; memory.ts and index.ts import all of them, which share the files in STORE_SHARED. */
const STORE = {
  private: "private",
  leases: "leases|private",
  seal: "seal",
  file: "file|leases|private|seal",
  keychain: "keychain|file|leases|private|seal",
  driver: "driver|seal",
  redis: "redis|driver",
  postgres: "postgres|driver",
};
const STORE_SHARED = "^src/store/store-error\\.ts$";
/** The folders of the command line that commands share; main, program and execute import all of them. */
const CLI = {
  io: "io",
  flags: "flags|io",
  runtime: "runtime|flags|io",
  config: "config|runtime|flags|io",
  output: "output|runtime|flags|io",
  clients: "clients|config|runtime|flags|io",
  listing: "listing|output|runtime|flags|io",
};

/** The folders of oauth, each with those that it may import; the agent and what is beside it import all of them. */
const OAUTH = {
  model: "model",
  http: "http|model",
  discovery: "discovery|http|model",
  client: "client|discovery|http|model",
  dpop: "dpop|http|model",
  token: "token|client|dpop|discovery|http|model",
  grant: "grant|token|client|dpop|discovery|http|model",
  machine: "machine|grant|token|client|dpop|discovery|http|model",
  login: "login|grant|token|client|dpop|discovery|http|model",
  "mcp-sdk": "mcp-sdk|grant|model",
};

function forbid(name, comment, from, to) {
  return { name, comment, severity: "error", from, to };
}

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    forbid(
      "base-stands-alone",
      "error-codes.ts, remedy.ts and redact.ts import nothing of ours, and errors.ts the first two alone",
      { path: BASE },
      { path: "^(src|bin|dist)/", pathNot: "^src/(error-codes|remedy)\\.ts$" },
    ),
    forbid(
      "http-below-features",
      "http/ imports itself and the base",
      { path: HTTP },
      { path: "^(src|bin|dist)/", pathNot: [HTTP, BASE] },
    ),
    forbid(
      "http-node-above-http",
      "http/node/ imports itself, http/ and the base",
      { path: HTTP_NODE },
      { path: "^(src|bin|dist)/", pathNot: [HTTP_NODE, HTTP, BASE] },
    ),
    forbid(
      "telemetry-below-features",
      "telemetry/ imports itself, http/ and the base",
      { path: TELEMETRY },
      { path: "^(src|bin|dist)/", pathNot: [TELEMETRY, HTTP, BASE] },
    ),
    forbid(
      "platform-below-runtime",
      "platform.ts imports the base",
      { path: PLATFORM },
      { path: "^(src|bin|dist)/", pathNot: [PLATFORM, BASE, BUNDLED] },
    ),
    forbid(
      "features-below-runtime",
      "api/, oauth/ and resource-server/ import one another's layer and what is below",
      { path: FEATURES },
      { path: "^(src|bin|dist)/", pathNot: [FEATURES, TELEMETRY, HTTP, BASE] },
    ),
    forbid(
      "runtime-below-cli",
      "profile/, sandbox/, mcp/, broker/, login/, node.ts and store/ never import the command line",
      { path: RUNTIME },
      { path: "^(src/cli|bin|dist)/" },
    ),
    forbid(
      "packages-hold-packages",
      "packages/ exports what is bundled as it was published",
      { path: BUNDLED },
      { path: "^(src|bin|dist)/" },
    ),
    forbid(
      "cli-below-bin",
      "cli/ imports neither bin/ nor what was built",
      { path: "^src/cli/" },
      { path: "^(bin|dist)/" },
    ),
    forbid(
      "bin-only-starts",
      "bin/ imports the built command line and nothing else",
      { path: "^bin/" },
      { pathNot: "dist/cli/main\\.cjs$" },
    ),
    forbid("api-not-oauth", "api/ and oauth/ never import each other", { path: "^src/api/" }, { path: "^src/oauth/" }),
    forbid("oauth-not-api", "api/ and oauth/ never import each other", { path: "^src/oauth/" }, { path: "^src/api/" }),
    forbid(
      "resource-server-alone",
      "resource-server/ is the other side of the wire: what clients are made of must not come with it",
      { path: "^src/resource-server/" },
      { path: "^src/(api|oauth)/" },
    ),
    forbid(
      "jose-on-demand",
      "a resource server loads jose with the first token: importing the entry point stays cheap",
      { path: "^src/resource-server/" },
      { path: "(^|/)node_modules/jose/|^jose(/|$)", dependencyTypesNot: ["dynamic-import", "type-only"] },
    ),
    forbid(
      "index-for-outsiders",
      "an index.ts is for users of the package: import the module that it exports from",
      { path: "^src/" },
      { path: ["^src/index\\.ts$", "^src/.*/index\\.ts$"] },
    ),
    forbid(
      "cli-commands-apart",
      "a command imports no other command: what two of them share moves down a floor",
      { path: "^src/cli/commands/([^/]+)/" },
      { path: "^src/cli/commands/", pathNot: "^src/cli/commands/$1/" },
    ),
    forbid(
      "cli-commands-use-the-context",
      "a command has its settings, clients, network and store from its context; doctor examines each by itself",
      { path: "^src/cli/commands/(?!doctor/)" },
      {
        path: [
          "^src/profile/resolve-settings\\.ts$",
          "^src/cli/clients/(context|management|agent|network)\\.ts$",
          "^src/profile/(network|connection-settings|open-store)\\.ts$",
        ],
      },
    ),
    forbid(
      "cli-commands-below-program",
      "a command knows neither the program nor the fast path",
      { path: "^src/cli/commands/" },
      { path: ["^src/cli/[^/]+\\.ts$", "^src/cli/fast-path/"] },
    ),
    forbid(
      "cli-commands-declared-by-program",
      "only the list of commands and the command above it import a command.ts",
      { path: "^src/cli/", pathNot: ["^src/cli/commands/all\\.gen\\.ts$", "/command\\.ts$"] },
      { path: "/command\\.ts$" },
    ),
    forbid(
      "cli-fast-path-apart",
      "what is answered without the program loads no command, but what runs the child of `exec`",
      { path: "^src/cli/fast-path/" },
      { path: ["^src/cli/commands/(?!exec/(child|masker)\\.ts$)", "^src/cli/program\\.ts$"] },
    ),
    ...Object.entries({ cli: CLI, oauth: OAUTH, sandbox: SANDBOX, store: STORE }).flatMap(([room, floors]) =>
      Object.entries(floors).map(([folder, below]) =>
        forbid(
          `${room}-${folder}`,
          `of ${room}/ ${folder}/ imports (${below})/ alone, and what all folders of ${room}/ share`,
          { path: `^src/${room}/${folder}/` },
          { path: `^src/${room}/(?!(${below})/)`, ...(room === "store" && { pathNot: STORE_SHARED }) },
        ),
      ),
    ),
    ...Object.entries(PACKAGES).map(([name, home]) =>
      forbid(
        `only-one-place-knows-${name}`,
        `only ${home} imports ${name}`,
        { path: "^(src|bin)/", pathNot: home },
        { path: `(^|/)node_modules/${name}/|^${name}(/|$)` },
      ),
    ),
    forbid(
      "node-modules-of-node",
      "the library runs on web-standard interfaces: node:* is for profile/, sandbox/, mcp/, login/, node.ts, store/ and cli/",
      { path: "^src/", pathNot: OF_NODE },
      { dependencyTypes: ["core"] },
    ),
    forbid(
      "installed-with-us",
      "the library imports what is among the dependencies, and other packages through packages/ alone",
      { path: "^src/", pathNot: ["^src/(packages|cli)/"] },
      {
        dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown", "unknown", "undetermined"],
        dependencyTypesNot: ["type-only", "npm-peer"],
      },
    ),
    forbid(
      "no-cycles",
      "modules that need each other are one module, or three: a type that several need has a file of its own, below them",
      { path: "^src/" },
      { circular: true },
    ),
    {
      ...forbid(
        "no-folder-cycles",
        "folders are floors: a type that two of them need lies in the lower one",
        { path: "^src/" },
        { circular: true },
      ),
      scope: "folder",
    },
    forbid(
      "no-orphans",
      "a module that nobody imports and that imports nobody is dead",
      { orphan: true, path: "^src/", pathNot: "\\.d\\.ts$" },
      {},
    ),
  ],
  options: {
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: ["node_modules", "^dist/"] },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["agentauth-source", "types", "import", "node", "default"],
      mainFields: ["types", "main"],
    },
  },
};
