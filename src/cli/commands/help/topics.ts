import { OUTPUT_FORMATS } from "../../flags/formats.js";
import { ENVIRONMENT } from "../../runtime/environment.js";
import { EXIT_CODE_MEANINGS, EXIT_CODES, type Outcome } from "../../runtime/exit-codes.js";
import type { Registry } from "../../runtime/registry.js";

const AGENTS = `Where an AI agent runs agentauth, and nothing else is said:
  - lists, status and the like are printed as JSON, as with -o json; token is still the bare token
  - errors are one line of JSON on stderr, the last one there
  - nobody is asked, no browser is opened and no pager started, as with --no-input --browser none

A line on stderr says so. Flags, and the output setting of a profile, come first: -o table prints a table.
Agents are known by the marks they leave in the environment; CI alone is none.
AGENTAUTH_AGENT=0 turns it off, AGENTAUTH_AGENT=1 on.

A person signs in with two commands, between which the agent is free:
  agentauth login <mcp_url> --no-wait --json       prints where to sign in, and ends
  agentauth login <mcp_url> --wait <login_id>      waits until that is done
A plain login does what the first one does, unless --browser or --flow says how the person is reached.

Every command with its flags as data: agentauth commands --json; what it prints: agentauth schema`;

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
  {
    name: "agents",
    about: "how it behaves where an AI agent runs it",
    text: () => AGENTS,
  },
  {
    name: "formats",
    about: "the output formats",
    text: () =>
      `Output formats (-o):\n${table(Object.entries(OUTPUT_FORMATS).map(([name, { about }]) => [name, about]))}`,
  },
];

/** The topics of `help`: commands that are not listed among the commands. */
export function declareHelpTopics(registry: Registry): void {
  for (const topic of TOPICS) {
    const command = registry.root.command(topic.name, { hidden: true }).description(topic.about);
    command.helpInformation = () => `${topic.text()}\n`;
    command.action(registry.action(async () => void (await registry.context.io.stdout.write(`${topic.text()}\n`))));
  }
  const names = TOPICS.map(({ name, about }) => `  ${`help ${name}`.padEnd(18)}  ${about}`);
  registry.root.addHelpText("after", `\nTopics:\n${names.join("\n")}\n\nTo begin without an account: agentauth demo`);
}
