import { type AddHelpTextContext, type AddHelpTextPosition, Command } from "commander";
import { commandPage, commandRows, globalFlagRows, visibleCommands } from "./page.js";
import { fill, type HelpedText, type HelpLayout, type HelpRow, moreOf, prose, rows } from "./text.js";

/** A command whose help comes in the order of need: usage, examples, subcommands, flags, and the rare flags by name. */
export class HelpedCommand extends Command implements HelpedText {
  more = "";
  readonly #layout: HelpLayout;

  constructor(name: string, layout: HelpLayout) {
    super(name);
    this.#layout = layout;
  }

  override createCommand(name = ""): HelpedCommand {
    return new HelpedCommand(name, this.#layout);
  }

  override addHelpText(_position: AddHelpTextPosition, text: string | ((context: AddHelpTextContext) => string)): this {
    this.more += typeof text === "string" ? text : text({ error: false, command: this });
    return this;
  }

  override helpInformation(): string {
    const page = this.parent === null ? rootPage : commandPage;
    return `${page(this, this.#layout).join("\n")}\n`;
  }
}

/** The commands that a new user needs first. */
const FIRST = ["demo", "login", "token", "devices list"];

/** The help of the program: a screen of 24 lines, or every command with its summary and the global flags. */
function rootPage(root: Command, { width, isFull }: HelpLayout): string[] {
  const visible = visibleCommands(root);
  const groups = [...new Set(visible.map((command) => command.helpGroup()))].map(
    (heading) => [heading, visible.filter((command) => command.helpGroup() === heading)] as const,
  );
  const head = ["Usage: agentauth <command> [flags]", "", ...fill(root.description(), width), ""];
  if (isFull) {
    return [
      ...head,
      ...groups.flatMap(([heading, commands]) => [heading, ...rows(commandRows(commands), width), ""]),
      "Global flags:",
      ...rows(globalFlagRows(root), width),
      "",
      ...prose(moreOf(root).trim(), width),
    ];
  }
  return [
    ...head,
    ...rows(
      FIRST.flatMap((words) => firstRow(root, words)),
      width,
    ),
    "",
    ...groups.flatMap(([heading, commands]) =>
      nameRow(
        heading.replace(/:$/, ""),
        commands.map((one) => one.name()),
        width,
      ),
    ),
    ...nameRow("Topics", [...moreOf(root).matchAll(/help [\w-]+/g)].map(String), width),
    "",
    ...fill("Help: agentauth <command> --help, agentauth --help --all", width, 2),
  ];
}

function firstRow(root: Command, words: string): HelpRow[] {
  const command = words
    .split(" ")
    .reduce<Command | undefined>((parent, word) => parent?.commands.find((one) => one.name() === word), root);
  if (command === undefined) return [];
  const [row] = commandRows([command]);
  const [, summary = ""] = row ?? [];
  const operands = command.registeredArguments.flatMap((one) => (one.required ? [` <${one.name()}>`] : []));
  return [[`agentauth ${words}${operands.join("")}`, summary]];
}

function nameRow(heading: string, names: readonly string[], width: number): string[] {
  return fill(`  ${heading.padEnd(9)} ${names.join(", ")}`, width, 12);
}
