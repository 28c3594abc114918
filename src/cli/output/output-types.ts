/** What the commands print as JSON, by the names that `agentauth schema` knows. */

/** One type of output. */
export interface OutputType {
  /** What it is and which command prints it. */
  about: string;
  /** Goes up when a reader of the version before could misread what is printed. */
  version: number;
}

/** Every type that has a schema. Only the names and what they are for: the schemas themselves are read when asked for. */
export const OUTPUT_TYPES = {
  device: { about: "a device: devices list, devices get", version: 1 },
  pool: { about: "a pool: pools list", version: 1 },
  domain: { about: "a domain: domains list", version: 1 },
  "watch-event": { about: "what changed in a list: devices list --watch -o ndjson", version: 1 },
  report: { about: "a pool's devices in numbers: devices report", version: 1 },
  tree: { about: "an account with its domains, pools and devices: tree", version: 1 },
  token: { about: "a token with what is known of it: token --format json", version: 1 },
  exchanged: { about: "a token that was exchanged: exchange --format json", version: 1 },
  login: { about: "a login that is done: login", version: 1 },
  "login-begun": { about: "a login that is to be finished: login --no-wait", version: 1 },
  status: { about: "a login that is kept: status", version: 1 },
  logout: { about: "what became of a login: logout", version: 1 },
  discover: { about: "how an issuer was found: discover", version: 1 },
  introspection: { about: "what the issuer says of a token: introspect", version: 1 },
  tool: { about: "a tool of an MCP server: mcp tools", version: 1 },
  doctor: { about: "checks and settings: doctor", version: 1 },
  setting: { about: "a setting in force: config list", version: 1 },
  profile: { about: "a profile: profile list", version: 1 },
  client: { about: "a client and its issuer: client list", version: 1 },
  "client-forgotten": { about: "a client without its issuer: client forget", version: 1 },
  sandbox: { about: "a sandbox: sandbox start, sandbox status", version: 1 },
  machine: { about: "what programs get tokens with, secrets: sandbox machine", version: 1 },
  commands: { about: "the command line itself: commands", version: 1 },
  error: { about: "a failure, on stderr: every command", version: 1 },
} as const satisfies Readonly<Record<string, OutputType>>;

/** The name of a type. */
export type OutputTypeName = keyof typeof OUTPUT_TYPES;
