/** An output that is not the whole: its error, the command that prints the rest, and the short form for an AI agent. */

import { AgentAuthError } from "../../errors.js";
import { shellWord } from "../../redact.js";
import type { Io } from "../io/io.js";
import { escapeJson } from "../output/safe-json.js";

/** The error of what was printed in part: another one ended it. @param resume the offset to continue at */
export function partialError(cause: AgentAuthError, message: string, hint: string, resume?: number): AgentAuthError {
  const { code, status, requestId, url, retryable } = cause;
  const partial = { class: "partial", hint, cause, resume, status, requestId, url, retryable } as const;
  return new AgentAuthError(code, `${message}: ${cause.message}`, partial);
}

/** The command line that continues a list where it stopped. */
export function resumeCommand(argv: readonly string[], offset: number, limit: number | undefined): string {
  const rest = withoutFlag(withoutFlag(argv, "--offset"), "--limit");
  const words = [
    "agentauth",
    ...rest,
    "--offset",
    String(offset),
    ...(limit === undefined ? [] : ["--limit", String(limit)]),
  ];
  return words.map(shellWord).join(" ");
}

function withoutFlag(argv: readonly string[], flag: string): string[] {
  const rest: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? "";
    if (word === flag) index++;
    else if (!word.startsWith(`${flag}=`)) rest.push(word);
  }
  return rest;
}

/** The number of items of the short form, which `--brief` asks for and an AI agent gets that names no form. */
export const BRIEF_ITEMS = 50;

/** What was left out of an output, as the line on stderr says it. */
export interface BriefNotice {
  /** The number of items that were printed. */
  shown: number;
  /** The number of items that there are, if it is known. */
  total?: number | undefined;
  /** The fields that were printed. */
  columns: string;
  /** What prints the items that follow; null if there are none. */
  next: { offset: number; command: string } | null;
  /** What prints more. */
  message: string;
}

/** Prints the notice as one line. An output that leaves items out says so with `--quiet` too: nothing else does. */
export function sayBrief(io: Io, notice: BriefNotice): void {
  const loud = notice.next === null ? io : io.with({ quiet: false });
  loud.say(escapeJson(JSON.stringify(notice)));
}
