/** The JSON outputs of the commands, by the type names of `agentauth schema`. */

export interface OutputType {
  /** Its description, and the command that prints it. */
  description: string;
  /** Incremented when a reader of the previous version could misread the output. */
  version: number;
}

/** Every type with a schema. Only names and descriptions: the schemas themselves are loaded on demand. */
export const OUTPUT_TYPES = {
  device: { description: "a device: devices list, devices get", version: 1 },
  pool: { description: "a pool: pools list, pools get", version: 1 },
  domain: { description: "a domain: domains list, domains get", version: 1 },
  report: { description: "a pool's devices in numbers: devices report", version: 1 },
  token: { description: "a token with its details: token --format json", version: 1 },
  exchanged: { description: "an exchanged token: exchange --format json", version: 1 },
  login: { description: "a finished login: login", version: 1 },
  "login-begun": { description: "a started login: login --no-wait", version: 1 },
  "login-not-required": { description: "a server that requires no login: login", version: 1 },
  status: { description: "a stored login: status", version: 1 },
  logout: { description: "the result of a logout: logout", version: 1 },
  "broker-policy": { description: "a policy of a broker, which is read: broker --config", version: 1 },
  discover: { description: "the steps of discovery: discover", version: 1 },
  introspection: { description: "the issuer's introspection response: introspect", version: 1 },
  tool: { description: "a tool of an MCP server: mcp tools", version: 1 },
  "host-server": { description: "a server that an MCP host uses: mcp list", version: 1 },
  doctor: { description: "checks and settings: doctor", version: 1 },
  setting: { description: "an effective setting: config list", version: 1 },
  profile: { description: "a profile: profile list", version: 1 },
  "client-document": { description: "the metadata document of a client: client document", version: 1 },
  "client-document-check": { description: "a rule of a metadata document: client document --check", version: 1 },
  "store-health": { description: "the engine of the logins and its keys: store health", version: 1 },
  "store-login": { description: "a stored login without its tokens: store logins", version: 1 },
  "store-reseal": { description: "numbers of resealed records: store reseal", version: 1 },
  "store-keep-alive": { description: "numbers of refreshed logins: store keep-alive", version: 1 },
  "store-copy": { description: "numbers of copied records, and what was skipped: store copy", version: 1 },
  "sandbox-options": { description: "options of a sandbox, which are read: sandbox start --options", version: 1 },
  sandbox: { description: "a sandbox: sandbox start, sandbox status", version: 1 },
  machine: { description: "credentials for machine grants, with secrets: sandbox machine", version: 1 },
  commands: { description: "the command line itself: commands", version: 1 },
  command: { description: "one command of the command line: commands <command>", version: 1 },
  "command-summary": { description: "a command in the list for AI agents: commands", version: 1 },
  error: { description: "a failure, on stderr: every command", version: 1 },
} as const satisfies Readonly<Record<string, OutputType>>;

export type OutputTypeName = keyof typeof OUTPUT_TYPES;
