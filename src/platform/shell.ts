/** Commands that messages show, for the shell of the user. Every hint with a command of a system has it from here. */

import { pasting, posixWord, type Shell, shellWord, wordFor } from "../redact.js";

function chooseForShell(forms: Readonly<Record<Shell, () => string>>): string {
  return forms[pasting.shell]();
}

/** Moves a file or a folder out of the way. */
export function moveAway(path: string, to: string): string {
  const [from, target] = [shellWord(path), shellWord(to)];
  return chooseForShell({
    sh: () => `mv ${from} ${target}`,
    powershell: () => `Move-Item -LiteralPath ${from} -Destination ${target}`,
    cmd: () => `move ${from} ${target}`,
  });
}

export function removeCommand(path: string): string {
  const word = shellWord(path);
  return chooseForShell({
    sh: () => `rm ${word}`,
    powershell: () => `Remove-Item -LiteralPath ${word}`,
    cmd: () => `del ${word}`,
  });
}

/**
 * Takes rights from others, or gives its owner the right to write, in the modes of `chmod`.
 *
 * @param owner the user id of its owner; default: this user
 */
export function changingMode(mode: "600" | "700" | "go-w" | "u+w", path: string, owner = userId()): string {
  const word = shellWord(path);
  const windows = (user: string) =>
    mode === "u+w" ? `attrib -r ${word}` : `icacls ${word} /inheritance:r /grant:r "${user}:(OI)(CI)F"`;
  return chooseForShell({
    // Only its owner and root can do it.
    sh: () => `${userId() === 0 || userId() === owner ? "" : "sudo "}chmod ${mode} ${word}`,
    // A colon after the name would be part of it.
    powershell: () => windows("$" + "{env:USERNAME}"),
    cmd: () => windows("%USERNAME%"),
  });
}

/** The user whose file another user cannot use. */
export interface ForeignFile {
  /** The user id of its owner. */
  owner?: number | undefined;
  /** Whether it is a folder, and everything in it is meant. */
  isTree?: boolean | undefined;
}

/**
 * Makes the user the owner of a file. Only root can do that. Under sudo it would take the file from the user who called
 * it: the advice is to do without.
 */
export function takingOwnership(path: string, { owner, isTree = false }: ForeignFile = {}): string {
  const word = shellWord(path);
  const windows = () => `takeown /f ${word}`;
  return chooseForShell({
    sh: () => {
      const isRoot = userId() === 0;
      const { caller } = pasting;
      if (isRoot && caller !== undefined && (caller.uid ?? owner) === owner)
        return `run it without sudo: ${word} is for ${caller.name}`;
      return `${isRoot ? "" : "sudo "}chown ${isTree ? "-R " : ""}${userId()} ${word}`;
    },
    powershell: windows,
    cmd: windows,
  });
}

function userId(): number | undefined {
  return process.getuid?.();
}

/** What lets a process go on that stands still, as the end of a sentence. */
export function wakingUp(pid: number): string {
  const windows = () => `if it hangs, end it: taskkill /f /pid ${pid}`;
  return chooseForShell({
    sh: () => `if it is stopped, resume it: kill -CONT ${pid}`,
    powershell: windows,
    cmd: windows,
  });
}

export function withInput(command: string, file: string): string {
  const redirected = () => `${command} < ${shellWord(file)}`;
  return chooseForShell({
    sh: redirected,
    powershell: () => `Get-Content ${shellWord(file)} | ${command}`,
    cmd: redirected,
  });
}

/** Sets a variable for the commands that follow in this shell. */
export function settingVariable(name: string, value: string): string {
  return chooseForShell({
    sh: () => `export ${name}=${posixWord(value)}`,
    powershell: () => `$env:${name} = ${quotedForPowershell(value)}`,
    cmd: () => `set "${name}=${value}"`,
  });
}

/** A command that writes a file that no other user can read. */
export function writePrivatelyCommand(command: string): string {
  return chooseForShell({ sh: () => `(umask 077; ${command})`, powershell: () => command, cmd: () => command });
}

/** What a file must be so that it can be run. */
export function runnableFileText(): string {
  const windows = () => "a file with an extension of PATHEXT, such as .exe or .cmd";
  return chooseForShell({ sh: () => "a file with permission to run it: chmod +x", powershell: windows, cmd: windows });
}

/** How shell syntax is passed to a command that runs programs. */
export function shellSyntax(): string {
  return chooseForShell({
    sh: () => "sh -c '...'",
    powershell: () => "powershell -Command '...'",
    cmd: () => "cmd /c ...",
  });
}

/** A string, also where a word would need no quotes. */
export function quotedForPowershell(value: string): string {
  const word = wordFor("powershell", value);
  return word === value ? `'${value}'` : word;
}
