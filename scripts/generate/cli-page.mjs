// docs/cli.md: every command with its flags and examples.
import { flagTerm, flagText, leaves, shareFlags } from "./flags.mjs";

/** The text of the page. */
export function cliPage(tree) {
  const shared = shareFlags(tree);
  const commands = leaves(tree.commands);
  const contents = commands.map(({ name, summary }) => `- [\`${name}\`](#${anchor(name)}): ${summary}`);
  const parts = [
    "# The command line",
    "<!-- Generated from the commands' own help by scripts/generate.mjs. Do not edit. -->",
    `${tree.summary} What follows is also what \`agentauth <command> --help --all\` says, \`man agentauth\` shows and ` +
      "`agentauth commands --json` prints as data.",
    contents.join("\n"),
    "## Flags of every command",
    flagTable(tree.flags),
    ...[...shared.groups].flatMap(([group, flags]) => [
      `## Flags shared by several commands: ${group}`,
      flagTable(flags),
    ]),
    ...commands.flatMap((one) => section(one, shared)),
    "## Exit codes",
    table(
      ["code", "class", "when"],
      tree.exit_codes.map(({ code, name, meaning }) => [code, name, meaning]),
    ),
    "## Environment",
    table(
      ["variable", ""],
      tree.environment.map(({ name, about }) => [code(name), about]),
    ),
    "A flag comes before the environment, the environment before the profile. An empty variable counts as unset.",
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function section(command, { isShared }) {
  const own = command.flags.filter((flag) => !isShared(flag));
  const others = command.flags.filter(isShared).map(({ name }) => code(name));
  return [
    `## ${command.name}`,
    `${sentence(command.summary)} ${code(command.usage)}`,
    prose(command.description),
    command.arguments.length === 0 ? "" : table(["operand", ""], command.arguments.map(operandRow)),
    own.length === 0 ? "" : flagTable(own),
    others.length === 0 ? "" : `Also, as described above: ${others.join(", ")}.`,
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

function escapeMarks(text) {
  return text.replace(/[<>*[\]]/g, "\\$&");
}

function sentence(text) {
  return `${escapeMarks(text.charAt(0).toUpperCase() + text.slice(1))}.`;
}

function anchor(name) {
  return name.replaceAll(" ", "-");
}
