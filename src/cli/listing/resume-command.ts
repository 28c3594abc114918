import { shellWord } from "../../redact.js";

/** The command line that goes on where a list stopped. */
export function resumeCommand(argv: readonly string[], offset: number, limit: number | undefined): string {
  const kept = withoutFlag(withoutFlag(argv, "--offset"), "--limit");
  const words = [
    "agentauth",
    ...kept,
    "--offset",
    String(offset),
    ...(limit === undefined ? [] : ["--limit", String(limit)]),
  ];
  return words.map(shellWord).join(" ");
}

function withoutFlag(argv: readonly string[], flag: string): string[] {
  const kept: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    if (word === flag) index++;
    else if (!word.startsWith(`${flag}=`)) kept.push(word);
  }
  return kept;
}
