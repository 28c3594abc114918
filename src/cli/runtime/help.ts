import { type AddHelpTextContext, type AddHelpTextPosition, Command, type Option } from "commander";

/** Lines of help, at most as wide as the terminal. The text is ours and ASCII but for single characters. */

/** A term and what it means, such as a flag. */
export type HelpRow = readonly [term: string, description: string];

const INDENT = "  ";
/** The columns that a description needs beside its term; with fewer it goes below. */
const LEAST_ABOUT = 30;
const WIDEST_TERM = 28;

/** The text broken at its blanks, its continued lines indented by `hang` columns. A longer word gets its own line. */
export function fill(text: string, width: number, hang = 0): string[] {
  const lines: string[] = [];
  const start = /^ */.exec(text)?.[0] ?? "";
  let line = start;
  for (const word of text.trimStart().split(" ")) {
    if (line.trim() === "") line += word;
    else if (line.length + 1 + word.length <= width) line += ` ${word}`;
    else {
      lines.push(line);
      line = " ".repeat(hang) + word;
    }
  }
  return [...lines, line];
}

/**
 * Terms and their meanings in two columns, or below each other where there is no room for two.
 *
 * @param aligned the rows that share the columns, of which `list` is a part
 */
export function formatRows(list: readonly HelpRow[], width: number, aligned: readonly HelpRow[] = list): string[] {
  const widest = Math.max(0, ...aligned.map(([term]) => term.length).filter((length) => length <= WIDEST_TERM));
  const column = INDENT.length + widest + 2;
  return list.flatMap(([term, description]) => {
    const head = `${INDENT}${term}`;
    if (width - column < LEAST_ABOUT) return [...fill(head, width, 4), ...fill(`      ${description}`, width, 6)];
    if (term.length > widest) return [head, ...fill(" ".repeat(column) + description, width, column)];
    return fill(`${head.padEnd(column)}${description}`, width, column);
  });
}

/** Prose: paragraphs are filled; a line that is indented or has columns stays a line. */
export function wrapProse(text: string, width: number): string[] {
  const lines: string[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length > 0) lines.push(...fill(paragraph.join(" "), width));
    paragraph = [];
  };
  for (const line of text.split("\n")) {
    const isOwnLine = line === "" || line.startsWith(INDENT) || /\S {2,}\S/.test(line);
    if (!isOwnLine) paragraph.push(line);
    if (isOwnLine || line.endsWith(":")) flush();
    if (isOwnLine) lines.push(...ownLine(line, width));
  }
  flush();
  return lines;
}

/** A line such as `  name   meaning` or `  - point`, its continuation below the last column. */
function ownLine(line: string, width: number): string[] {
  const [, head = "", description = ""] = /^( *(?:- |\S.*? {2,}))(.*)$/.exec(line) ?? [];
  if (description === "") return fill(line, width, 4);
  const isNarrow = !head.endsWith("- ") && width - head.length < LEAST_ABOUT;
  if (!isNarrow || line.length <= width) return fill(line, width, head.length);
  return [...fill(head.trimEnd(), width, 4), ...fill(`      ${description}`, width, 6)];
}

/** A command line to paste, continued with a backslash between two words of the shell. */
export function commandLine(command: string, width: number): string[] {
  const [first = "", ...words] = command.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  const lines: string[] = [];
  let line = `${INDENT}$ ${first}`;
  words.forEach((word, index) => {
    const room = index === words.length - 1 ? width : width - 2;
    if (line.length + 1 + word.length <= room) line += ` ${word}`;
    else {
      lines.push(`${line} \\`);
      line = `      ${word}`;
    }
  });
  return [...lines, line];
}

export interface HelpLayout {
  /** The columns of the terminal. */
  width: number;
  /** Whether every flag is described, as with `--all`. */
  isFull: boolean;
}

/** A command that keeps what `addHelpText` was given. */
export interface HelpedText {
  /** Prose, and examples. */
  more: string;
}

const EXAMPLE = /^ {2}\$ (.*)$/;

/** Splits the text below a summary into its examples and the rest. */
export function readHelpText(help: string): { text: string; examples: string[] } {
  const lines = help.split("\n");
  const examples = lines.flatMap((line) => EXAMPLE.exec(line)?.[1] ?? []);
  const rest = lines.filter((line) => !EXAMPLE.test(line) && !/^Examples?:$/.test(line));
  return {
    text: rest
      .join("\n")
      .replace(/\n{3,}/g, "\n\n")
      .trim(),
    examples,
  };
}

/** The text below the summary of a command, as it was declared. */
export function describeMore(command: Command): string {
  return (command as Partial<HelpedText>).more ?? "";
}

/** The lines that a page has at most, unless everything is asked for. */
const MOST_LINES = 40;
/** The width for which the lines are counted: a narrow window does not hide more flags than a usual one. */
const USUAL_WIDTH = 80;
/** The examples of a group that has none itself: the first one of each of its commands. */
const MOST_EXAMPLES = 6;

/** How much a page shows: rare flags by name, only the headings that they are under, and then no prose either. */
type Detail = "everything" | "flags" | "common" | "short" | "brief";

/** The heading of the flags that only this command has. */
const OWN = "Flags:";
/** The flags that most users need, of those that several commands share. */
const COMMON: ReadonlySet<string> = new Set([
  "--scope",
  "--flow",
  "--browser",
  "--client-id",
  "--grant",
  "--output",
  "--json",
  "--jq",
  "--columns",
  "--sort",
  "--limit",
  "--status",
  "--title",
]);
const LAST = ["Global flags:", "Machine grants:", "Security policy:"];

function commandPage(command: Command, { width, isFull }: HelpLayout): string[] {
  if (isFull) return renderPage(command, width, "everything");
  const detail = (["flags", "common", "short", "brief"] as const).find(
    (one) => renderPage(command, USUAL_WIDTH, one).length <= MOST_LINES,
  );
  return renderPage(command, width, detail ?? "brief");
}

function commandRows(commands: readonly Command[]): HelpRow[] {
  return commands.map((command) => [shortTerm(command), command.description()]);
}

/** The commands that the help lists. */
export function visibleCommands(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => command.commands.includes(one));
}

export function globalFlagRows(root: Command): HelpRow[] {
  return root.createHelp().visibleOptions(root).map(flagRow);
}

/** In a list of commands the name and the arguments are enough. */
function shortTerm(command: Command): string {
  const args = command.registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`));
  return [command.name(), ...args].join(" ");
}

function renderPage(command: Command, width: number, detail: Detail): string[] {
  const { text, examples } = readHelpText(describeMore(command));
  const subcommands = visibleCommands(command);
  const name = fullName(command);
  const groups = flagGroups(command, detail === "everything");
  const isAll = detail === "everything" || detail === "flags";
  const shown = isAll ? groups : groups.map(commonFlags);
  const rest = isAll ? [] : groups.map(rareFlags).filter(({ options }) => options.length > 0);
  const shownExamples = examples.length > 0 ? examples : subcommands.flatMap(firstExample);
  const parts = [
    fill(`Usage: ${name} ${command.usage()}`, width, 4),
    fill(command.description(), width),
    addHeading(
      shownExamples.length === 1 ? "Example:" : "Examples:",
      shownExamples
        .slice(0, detail === "everything" ? undefined : MOST_EXAMPLES)
        .flatMap((line) => commandLine(line, width)),
    ),
    addHeading("Commands:", formatRows(commandRows(subcommands), width)),
    addHeading("Arguments:", formatRows(argumentRows(command), width)),
    isAll
      ? shown.flatMap(({ heading, options }, index) => [
          ...(index === 0 ? [] : [""]),
          heading,
          ...formatRows(options.map(flagRow), width),
        ])
      : addHeading(OWN, formatRows(shown.flatMap(({ options }) => options).map(flagRow), width)),
    detail === "brief" || text === "" ? [] : wrapProse(text, width),
    rareLines(rest, detail, width),
    fill(renderFooter(name, subcommands.length > 0, detail), width, 2),
  ];
  return parts.filter((lines) => lines.length > 0).flatMap((lines, index) => (index === 0 ? lines : ["", ...lines]));
}

/** The rare flags by their names, or by the headings that they are under. */
function rareLines(rest: readonly FlagGroup[], detail: Detail, width: number): string[] {
  if (rest.length === 0) return [];
  if (detail === "common")
    return rest.flatMap(({ heading, options }) =>
      fill(`${heading} ${options.map(({ long }) => long).join(", ")}`, width, 2),
    );
  return fill(`More flags: ${rest.map(({ heading }) => heading.replace(/:$/, "").toLowerCase()).join(", ")}`, width, 2);
}

function renderFooter(name: string, isGroup: boolean, detail: Detail): string {
  const global = "Global flags: agentauth help flags";
  if (detail === "everything") return "Topics: agentauth help";
  const more = `${name} --help --all`;
  if (isGroup) return `More: ${detail === "flags" ? "" : `${more}, `}${name} <command> --help. ${global}`;
  return detail === "flags" ? global : `More: ${more}. ${global}`;
}

function addHeading(heading: string, lines: string[]): string[] {
  return lines.length === 0 ? [] : [heading, ...lines];
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function firstExample(command: Command): string[] {
  const { examples } = readHelpText(describeMore(command));
  const own = examples.find((line) => line.includes(fullName(command))) ?? examples[0];
  return own === undefined ? [] : [own];
}

function argumentRows(command: Command): HelpRow[] {
  const help = command.createHelp();
  return help.visibleArguments(command).map((one) => [help.argumentTerm(one), help.argumentDescription(one)]);
}

function flagRow(option: Option): HelpRow {
  const choices = option.argChoices?.length ? ` (${option.argChoices.join(", ")})` : "";
  return [option.flags, `${option.description}${choices}`];
}

interface FlagGroup {
  heading: string;
  options: readonly Option[];
}

function flagGroups(command: Command, withGlobal: boolean): FlagGroup[] {
  const found = new Map<string, Option[]>();
  const add = (heading: string, option: Option) => found.set(heading, [...(found.get(heading) ?? []), option]);
  for (const option of command.options) if (!option.hidden) add(option.helpGroupHeading ?? OWN, option);
  if (withGlobal) {
    let root = command;
    while (root.parent !== null) root = root.parent;
    for (const option of root.createHelp().visibleOptions(root)) add("Global flags:", option);
  }
  const place = (heading: string) => (heading === OWN ? -1 : LAST.indexOf(heading) + 1);
  return [...found]
    .map(([heading, options]) => ({ heading, options }))
    .sort((a, b) => place(a.heading) - place(b.heading));
}

function commonFlags({ heading, options }: FlagGroup): FlagGroup {
  return { heading, options: options.filter((one) => heading === OWN || COMMON.has(one.long ?? "")) };
}

function rareFlags({ heading, options }: FlagGroup): FlagGroup {
  return { heading, options: options.filter((one) => heading !== OWN && !COMMON.has(one.long ?? "")) };
}

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

/** The two jobs, each with the commands that a new user needs first. */
const JOBS = {
  "A token for an MCP server:": ["login", "token"],
  "The lists of a service:": ["devices list", "pools list"],
  "Without an account:": ["demo"],
};
/** The commands of platforms, fleets and issuers, which only the whole help lists. */
const RARE: ReadonlySet<string> = new Set(["broker", "client", "exchange", "introspect", "store"]);

/** The help of the program: a screen of 24 lines, or every command with its summary and the global flags. */
function rootPage(root: Command, { width, isFull }: HelpLayout): string[] {
  const visible = visibleCommands(root);
  const groups = [...new Set(visible.map((command) => command.helpGroup()))].map(
    (heading) => [heading, visible.filter((command) => command.helpGroup() === heading)] as const,
  );
  const head = ["Usage: agentauth <command> [flags]", "", ...fill(root.description(), width), ""];
  if (isFull)
    return [
      ...head,
      ...groups.flatMap(([heading, commands]) => [heading, ...formatRows(commandRows(commands), width), ""]),
      "Global flags:",
      ...formatRows(globalFlagRows(root), width),
      "",
      ...wrapProse(describeMore(root).trim(), width),
    ];
  const jobs = Object.entries(JOBS).map(
    ([job, first]) => [job, first.flatMap((words) => firstRow(root, words))] as const,
  );
  const aligned = jobs.flatMap(([, rows]) => rows);
  return [
    ...head,
    ...jobs.flatMap(([heading, rows]) => addHeading(heading, formatRows(rows, width, aligned))),
    "",
    ...groups.flatMap(([heading, commands]) =>
      nameRow(
        heading.replace(/:$/, ""),
        commands.map((one) => one.name()).filter((name) => !RARE.has(name)),
        width,
      ),
    ),
    ...nameRow("Topics", [...describeMore(root).matchAll(/help [\w-]+/g)].map(String), width),
    "",
    ...fill("Help: agentauth <command> --help. All commands: agentauth --help --all", width, 2),
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
