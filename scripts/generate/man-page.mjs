// docs/man/agentauth.1: the manual page, in the macros that every man knows.
import { flagTerm, flagText, leaves, shareFlags } from "./flags.mjs";

/** The text of the page. */
export function manPage(tree) {
  const shared = shareFlags(tree);
  const lines = [
    ".\\\" Generated from the commands' own help by scripts/generate.mjs. Do not edit.",
    `.TH AGENTAUTH 1 "" "agentauth ${tree.version}" "User Commands"`,
    // Flags and addresses must not be hyphenated.
    ".nh",
    ".ad l",
    ".SH NAME",
    `agentauth \\- ${roff(tree.summary.replace(/\.$/, ""))}`,
    ".SH SYNOPSIS",
    ".B agentauth",
    ".I command",
    "[options]",
    ".SH DESCRIPTION",
    "Data goes to standard output, messages for the user to standard error.",
    "Every command lists its own flags with",
    ".BR \\-\\-help .",
    ".SH COMMANDS",
    ...leaves(tree.commands).flatMap((one) => section(one, shared)),
    ".SH OPTIONS OF EVERY COMMAND",
    ...tree.flags.flatMap(flagItem),
    ...[...shared.groups].flatMap(([group, flags]) => [
      `.SH OPTIONS SHARED BY SEVERAL COMMANDS: ${roff(group.toUpperCase())}`,
      ...flags.flatMap(flagItem),
    ]),
    ".SH EXIT STATUS",
    ...tree.exit_codes.flatMap(({ code, meaning }) => [".TP", `.B ${code}`, roff(meaning)]),
    ".SH ENVIRONMENT",
    ...tree.environment.flatMap(({ name, description }) => [".TP", `.B ${roff(name)}`, roff(description)]),
    ".SH SEE ALSO",
    ".BR curl (1),",
    ".BR git\\-credential (1),",
    ".BR jq (1)",
  ];
  return `${lines.join("\n")}\n`;
}

function section(command, { isShared }) {
  const own = command.flags.filter((flag) => !isShared(flag));
  const others = command.flags.filter(isShared).map(({ name }) => name);
  return [
    `.SS ${roff(command.usage)}`,
    `${roff(command.summary.charAt(0).toUpperCase() + command.summary.slice(1))}.`,
    ...prose(command.description),
    ...command.arguments.filter(({ description }) => description !== "").flatMap(operandItem),
    ...own.flatMap(flagItem),
    ...(others.length === 0 ? [] : [".PP", `Also, as described below: ${roff(others.join(", "))}.`]),
    ...(command.examples.length === 0 ? [] : [".PP", "Examples:", ...verbatim(command.examples)]),
  ];
}

/** Indented lines stay, other lines are filled. */
function prose(description) {
  if (description === "") return [];
  return description.split("\n\n").flatMap((block) => {
    const lines = block.split("\n");
    const flowing = lines.filter((line) => !line.startsWith("  "));
    const indented = lines.filter((line) => line.startsWith("  ")).map((line) => line.slice(2));
    return [
      ...(flowing.length === 0 ? [] : [".PP", ...flowing.map(roff)]),
      ...(indented.length === 0 ? [] : [...(flowing.length === 0 ? [".PP"] : []), ...verbatim(indented)]),
    ];
  });
}

function verbatim(lines) {
  return [".RS 4", ".nf", ...lines.map(roff), ".fi", ".RE"];
}

function operandItem({ name, required, variadic, description }) {
  const word = variadic ? `${name}...` : name;
  return [".TP", `.I ${roff(required ? `<${word}>` : `[${word}]`)}`, roff(description)];
}

function flagItem(flag) {
  return [".TP", `.B ${roff(flagTerm(flag))}`, roff(flagText(flag))];
}

/** Escapes text: no line is a request, and hyphens are ASCII. */
function roff(text) {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("'", "\\(aq")
    .replaceAll("`", "\\(ga")
    .replaceAll('"', "\\(dq")
    .replaceAll("~", "\\(ti")
    .replaceAll("^", "\\(ha")
    .replace(
      /[^\n\x20-\x7e]/gu,
      (char) => `\\[u${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`,
    )
    .replace(/^\./, "\\&.");
}
