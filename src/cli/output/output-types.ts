/** The JSON outputs of the commands, by the type names of `agentauth schema`. */

export interface OutputType {
  /** Its description, and the command that prints it. */
  about: string;
  /** Incremented when a reader of the previous version could misread the output. */
  version: number;
}

/** Every type with a schema. Only names and descriptions: the schemas themselves are loaded on demand. */
export const OUTPUT_TYPES = {
  device: { about: "a device: devices list, devices get", version: 1 },
  pool: { about: "a pool: pools list, pools get", version: 1 },
  domain: { about: "a domain: domains list, domains get", version: 1 },
  report: { about: "a pool's devices in numbers: devices report", version: 1 },
  token: { about: "a token with its details: token --format json", version: 1 },
  exchanged: { about: "an exchanged token: exchange --format json", version: 1 },
  login: { about: "a finished login: login", version: 1 },
  "login-begun": { about: "a started login: login --no-wait", version: 1 },
  "login-not-required": { about: "a server that requires no login: login", version: 1 },
  status: { about: "a stored login: status", version: 1 },
  logout: { about: "the result of a logout: logout", version: 1 },
  "broker-policy": { about: "a policy of a broker, which is read: broker --config", version: 1 },
  discover: { about: "the steps of discovery: discover", version: 1 },
  introspection: { about: "the issuer's introspection response: introspect", version: 1 },
  tool: { about: "a tool of an MCP server: mcp tools", version: 1 },
  "host-server": { about: "a server that an MCP host uses: mcp list", version: 1 },
  doctor: { about: "checks and settings: doctor", version: 1 },
  setting: { about: "an effective setting: config list", version: 1 },
  profile: { about: "a profile: profile list", version: 1 },
  "client-document": { about: "the metadata document of a client: client document", version: 1 },
  "client-document-check": { about: "a rule of a metadata document: client document --check", version: 1 },
  "store-health": { about: "the engine of the logins and its keys: store health", version: 1 },
  "store-login": { about: "a stored login without its tokens: store logins", version: 1 },
  "store-reseal": { about: "numbers of resealed records: store reseal", version: 1 },
  "store-keep-alive": { about: "numbers of refreshed logins: store keep-alive", version: 1 },
  "store-copy": { about: "numbers of copied records, and what was skipped: store copy", version: 1 },
  "sandbox-options": { about: "options of a sandbox, which are read: sandbox start --options", version: 1 },
  sandbox: { about: "a sandbox: sandbox start, sandbox status", version: 1 },
  machine: { about: "credentials for machine grants, with secrets: sandbox machine", version: 1 },
  commands: { about: "the command line itself: commands", version: 1 },
  command: { about: "one command of the command line: commands <command>", version: 1 },
  "command-summary": { about: "a command in the list for AI agents: commands", version: 1 },
  error: { about: "a failure, on stderr: every command", version: 1 },
} as const satisfies Readonly<Record<string, OutputType>>;

export type OutputTypeName = keyof typeof OUTPUT_TYPES;
