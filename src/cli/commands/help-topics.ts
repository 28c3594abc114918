import { EXIT_CODE_MEANINGS, EXIT_CODES, type Outcome } from "../exit-codes.js";
import type { Registry } from "../program.js";

const ENVIRONMENT: readonly (readonly [string, string])[] = [
  ["AGENTAUTH_BASE_URL", "the service's base address"],
  ["AGENTAUTH_API_TOKEN", "the API token of the management interface"],
  ["AGENTAUTH_CLIENT_SECRET", "the secret of the client that --client-id names"],
  ["AGENTAUTH_PROFILE", "the profile to use"],
  ["AGENTAUTH_HOME", "the folder that all files are kept in"],
  ["AGENTAUTH_STORE", "where logins are kept: file, keyring or memory"],
  ["AGENTAUTH_NO_INPUT", "never ask, as --no-input"],
  ["AGENTAUTH_ERRORS", '"json" prints errors as one line of JSON'],
  ["HTTPS_PROXY, HTTP_PROXY, ALL_PROXY", "the proxy for requests"],
  ["NO_PROXY", "hosts that are reached without it"],
  ["NODE_EXTRA_CA_CERTS", "certificate authorities to trust too"],
  ["NO_COLOR, FORCE_COLOR", "colours off or on; NO_COLOR wins"],
  ["COLUMNS", "the width to print tables for"],
];

const FORMATS: readonly (readonly [string, string])[] = [
  ["table", "aligned columns that fit the terminal, relative times"],
  ["wide", "aligned columns, more of them, never left out"],
  ["plain", "tab-separated values, nothing cut, RFC 3339 times"],
  ["json", "one array; an interrupted list is never a complete one"],
  ["ndjson", "one object a line, as they come"],
  ["csv", "RFC 4180, formulas disarmed (--csv-raw leaves them)"],
  ["yaml", "a sequence of mappings"],
  ["id", "one identifier a line"],
];

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, about]) => `  ${name.padEnd(width)}  ${about}`).join("\n");
}

const TOPICS: readonly { name: string; about: string; text: () => string }[] = [
  {
    name: "exit-codes",
    about: "what each exit code means",
    text: () =>
      `Exit codes:\n${table(Object.entries(EXIT_CODES).map(([name, code]) => [String(code), EXIT_CODE_MEANINGS[name as Outcome]] as const))}`,
  },
  {
    name: "environment",
    about: "the environment variables that count",
    text: () =>
      `Environment variables:\n${table(ENVIRONMENT)}\n\nA flag comes before the environment, the environment before the profile.\nAn empty variable counts as unset.`,
  },
  { name: "formats", about: "the output formats", text: () => `Output formats (-o):\n${table(FORMATS)}` },
];

/** The topics of `help`: commands that are not listed among the commands. */
export function declareHelpTopics(registry: Registry): void {
  for (const topic of TOPICS) {
    const command = registry.root.command(topic.name, { hidden: true }).description(topic.about);
    command.helpInformation = () => `${topic.text()}\n`;
    command.action(registry.action(async () => void (await registry.deps.io.stdout.write(`${topic.text()}\n`))));
  }
  const names = TOPICS.map(({ name, about }) => `  ${`help ${name}`.padEnd(18)}  ${about}`);
  registry.root.addHelpText("after", `\nTopics:\n${names.join("\n")}\n\nTo begin without an account: agentauth demo`);
}
