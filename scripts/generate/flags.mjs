// Flags as the pages list them: flags of many commands are listed once.

/** A flag that this many commands have, with the same text, is listed once. */
const MANY = 3;

/** Sorts the flags of every command into shared ones, by their headings, and those listed with the command. */
export function shareFlags(tree) {
  const commands = leaves(tree.commands);
  const uses = new Map();
  for (const { flags } of commands) {
    for (const flag of flags) uses.set(keyOf(flag), { flag, count: (uses.get(keyOf(flag))?.count ?? 0) + 1 });
  }
  const isShared = (flag) => (uses.get(keyOf(flag))?.count ?? 0) >= MANY;
  const groups = new Map();
  for (const { flag } of uses.values()) {
    if (isShared(flag)) groups.set(flag.group, [...(groups.get(flag.group) ?? []), flag]);
  }
  return { groups, isShared };
}

/** The runnable commands of a tree. */
export function leaves(commands) {
  return commands.flatMap((one) => (one.commands.length > 0 ? leaves(one.commands) : [one]));
}

/** `-o, --output <format>`. */
export function flagTerm({ name, short, value, value_optional: optional }) {
  const form = short === undefined ? name : `${short}, ${name}`;
  if (value === undefined) return form;
  return optional ? `${form} [${value}]` : `${form} <${value}>`;
}

/** The text of a flag: its description, its choices and its variables. */
export function flagText({ description, choices, env }) {
  const parts = [description];
  if (choices) parts.push(`one of ${choices.join(", ")}`);
  if (env) parts.push(`also ${env.join(", ")}`);
  return parts.join("; ");
}

function keyOf({ group, name, description }) {
  return `${group}\n${name}\n${description}`;
}
