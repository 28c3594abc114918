// Who may import whom: bin > cli > { sandbox, mcp, login, node, store } > { api, oauth, resource-server } > http >
// errors, redact. test/import-rules.test.ts shows of each rule that it finds what it forbids.

const BASE = "^src/(errors|redact)\\.ts$";
const HTTP = "^src/http/";
const FEATURES = "^src/(api|oauth|resource-server)/";
const RUNTIME = "^src/(sandbox|mcp|login|node|store)/";
/** What needs Node; scripts/build.mjs bundles it with its packages. */
const OF_NODE = ["^src/(sandbox|mcp|login|node|cli)/", "^src/store/(?!(memory|memory-leases)\\.ts$)"];

/** Each of these packages is known in one place, so that it can be exchanged there. */
const PACKAGES = {
  commander: "^src/cli/",
  "cli-table3": "^src/cli/output/",
  conf: "^src/cli/config/file\\.ts$",
  "openapi-fetch": "^src/api/client\\.ts$",
  oauth4webapi: "^src/oauth/",
  open: "^src/login/browser\\.ts$",
  echarts: "^src/cli/commands/report/html/",
  "topojson-client": "^src/cli/commands/report/html/",
  "world-atlas": "^src/cli/commands/report/html/",
};

function forbid(name, comment, from, to) {
  return { name, comment, severity: "error", from, to };
}

/** @type {import("dependency-cruiser").IConfiguration} */
module.exports = {
  forbidden: [
    forbid(
      "base-stands-alone",
      "errors.ts and redact.ts import nothing of ours",
      { path: BASE },
      { path: "^(src|bin|dist)/" },
    ),
    forbid(
      "http-below-features",
      "http/ imports itself, errors.ts and redact.ts",
      { path: HTTP },
      { path: "^(src|bin|dist)/", pathNot: [HTTP, BASE] },
    ),
    forbid(
      "features-below-runtime",
      "api/, oauth/ and resource-server/ import one another's layer and what is below",
      { path: FEATURES },
      { path: "^(src|bin|dist)/", pathNot: [FEATURES, HTTP, BASE] },
    ),
    forbid(
      "runtime-below-cli",
      "sandbox/, mcp/, login/, node/ and store/ never import the command line",
      { path: RUNTIME },
      { path: "^(src/cli|bin|dist)/" },
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
      { pathNot: "dist/cli/main\\.js$" },
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
      "index-for-outsiders",
      "an index.ts is for users of the package: import the module that it exports from",
      { path: "^src/" },
      { path: ["^src/index\\.ts$", "^src/.*/index\\.ts$"] },
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
      "the library runs on web-standard interfaces: node:* is for sandbox/, mcp/, login/, node/, store/ and cli/",
      { path: "^src/", pathNot: OF_NODE },
      { dependencyTypes: ["core"] },
    ),
    forbid(
      "installed-with-us",
      "what the library imports, which is not bundled, must be among the dependencies",
      { path: "^src/", pathNot: OF_NODE },
      { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown", "unknown", "undetermined"] },
    ),
    forbid(
      "no-cycles",
      "modules that need each other are one module, or three: a type that several need has a file of its own, below them",
      { path: "^src/" },
      { circular: true },
    ),
    forbid(
      "no-orphans",
      "a module that nobody imports and that imports nobody is dead",
      { orphan: true, path: "^src/" },
      {},
    ),
  ],
  options: {
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: ["node_modules", "^dist/"] },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["types", "import", "node", "default"],
      mainFields: ["types", "main"],
    },
  },
};
