// docs/cli.md and docs/cli-*.md: every command with its flags and examples, one page for each heading of the help.
import { flagTerm, flagText, leaves, shareFlags } from "./flags.mjs";

/** The pages, with the headings of the help that each one holds. */
const PAGES = {
  tokens: ["Tokens"],
  lists: ["Lists"],
  settings: ["Settings"],
  sandbox: ["Start", "Sandbox"],
  help: ["Help"],
};
const GENERATED = "<!-- Generated from the commands' own help by scripts/generate.mjs. Do not edit. -->";

/** The texts of the pages by their file. */
export function cliPages(tree) {
  const shared = shareFlags(tree);
  const pages = Object.entries(PAGES).map(([page, headings]) => {
    const commands = leaves(tree.commands.filter(({ group }) => headings.includes(group)));
    return { file: `cli-${page}.md`, title: `Commands: ${page}`, commands };
  });
  return Object.fromEntries([
    ["docs/cli.md", text(overview(tree, shared, pages))],
    ...pages.map(({ file, title, commands }) => [
      `docs/${file}`,
      text([`# ${title}`, GENERATED, ...commands.flatMap((one) => section(one, shared))]),
    ]),
  ]);
}

function overview(tree, shared, pages) {
  return [
    "# The command line",
    GENERATED,
    `${tree.summary} What follows is also what \`agentauth <command> --help --all\` says, \`man agentauth\` shows and ` +
      "`agentauth commands --json` prints as data.",
    ...pages.flatMap(({ file, title, commands }) => [
      `## ${title}`,
      commands.map(({ name, summary }) => `- [\`${name}\`](${file}#${anchor(name)}): ${summary}`).join("\n"),
    ]),
    "## Flags: all commands",
    flagTable(tree.flags),
    ...[...shared.groups].flatMap(([group, flags]) => [`## ${flagsTitle(group)}`, flagTable(flags)]),
    "## Exit codes",
    table(
      ["code", "class", "when"],
      tree.exit_codes.map(({ code, name, meaning }) => [code, name, meaning]),
    ),
    "## Environment",
    table(
      ["variable", ""],
      tree.environment.map(({ name, description }) => [code(name), description]),
    ),
    "A flag comes before the environment, the environment before the profile. An empty variable counts as unset.",
  ];
}

function section(command, { isShared }) {
  const own = command.flags.filter((flag) => !isShared(flag));
  const groups = [...new Set(command.flags.filter(isShared).map(({ group }) => group))];
  const others = groups.map((group) => {
    const names = command.flags.filter((flag) => isShared(flag) && flag.group === group).map(({ name }) => code(name));
    return `[${flagsTitle(group)}](cli.md#${anchor(flagsTitle(group))}): ${names.join(", ")}`;
  });
  return [
    `## ${command.name}`,
    `${sentence(command.summary)} ${code(command.usage)}`,
    prose(command.description),
    command.arguments.length === 0 ? "" : table(["operand", ""], command.arguments.map(operandRow)),
    own.length === 0 ? "" : flagTable(own),
    others.map((line) => `- ${line}`).join("\n"),
    command.examples.length === 0 ? "" : `\`\`\`sh\n${command.examples.join("\n")}\n\`\`\``,
  ];
}

/** Keeps paragraphs; indented lines become code. */
function prose(description) {
  if (description === "") return "";
  const blocks = description.split("\n\n").map((block) => {
    const lines = block.split("\n");
    const indented = lines.filter((line) => line.startsWith("  "));
    if (indented.length === 0) return escapeMarks(block);
    const [head] = lines.filter((line) => !line.startsWith("  "));
    return `${head === undefined ? "" : `${escapeMarks(head)}\n\n`}\`\`\`text\n${indented.join("\n")}\n\`\`\``;
  });
  return blocks.join("\n\n");
}

function operandRow({ name, required, variadic, description }) {
  const word = variadic ? `${name}...` : name;
  return [code(required ? `<${word}>` : `[${word}]`), escapeMarks(description)];
}

function flagTable(flags) {
  return table(
    ["flag", ""],
    flags.map((flag) => [code(flagTerm(flag)), escapeMarks(flagText(flag))]),
  );
}

function table(header, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}

function code(text) {
  return `\`${text}\``;
}

/** Text as Markdown: what has a placeholder, such as `env:<name>`, is code, which no table cuts. */
function escapeMarks(text) {
  const parts = text.split(/((?:[\w.:=/-]*<[\w:= -]+>)+)/);
  return parts.map((part, nth) => (nth % 2 === 1 ? code(part) : part.replace(/[<>*[\]]/g, "\\$&"))).join("");
}

function sentence(text) {
  return `${escapeMarks(text.charAt(0).toUpperCase() + text.slice(1))}.`;
}

function flagsTitle(group) {
  return `Flags: ${group.toLowerCase()}`;
}

/** The address of a heading in the site and at GitHub. */
function anchor(heading) {
  return heading.toLowerCase().replaceAll(":", "").replaceAll(" ", "-");
}

function text(parts) {
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}
