// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the shells expand them.
import { type Command as EngineCommand, RootCommand, script } from "@bomb.sh/tab";
import type { Command } from "commander";
import { orUndefined } from "../../../errors.js";
import { PROFILE_KEYS } from "../../../profile/profile-settings.js";
import { profileNames, readConfig, readSandboxState } from "../../../profile/settings-file.js";
import { fileStore } from "../../../store/file/file.js";
import { MCP_HOSTS } from "../../clients/hosts.js";
import { COLUMNS, documentedValues, SORT_FIELDS } from "../../listing/source.js";
import { OUTPUT_TYPES } from "../../output/output-types.js";
import type { CommandContext } from "../../runtime/context.js";

/**
 * Scripts in place of the package's: those for bash and PowerShell evaluate the typed words, and those for bash and zsh
 * break at the colon of a URL. Here neither the words nor the candidates are evaluated, since both may contain "$(…)".
 */
export const OWN_SCRIPTS: Readonly<Partial<Record<string, readonly string[]>>> = {
  /** It needs only bash, 3.2 or later. A word ends at a blank, also between quotes. */
  bash: [
    '# bash completion for agentauth: eval "$(agentauth completion bash)"; bash 3.2 of macOS cannot source <(...)',
    "__agentauth_complete() {",
    "    local typed=${COMP_LINE:0:COMP_POINT} words=() tab=$'\\t' flag= directive=4 cur prefix line value",
    '    read -ra words <<< "$typed"',
    '    if [[ $typed == *[[:space:]] ]]; then words+=(""); fi',
    "    cur=${words[${#words[@]}-1]}",
    "    if [[ $cur == --*=* ]]; then flag=${cur%%=*}=; fi",
    '    # Bash also splits a word at ":" and "=": the text before the last split is on the line already.',
    '    prefix=${cur%"${cur##*[$COMP_WORDBREAKS]}"}',
    "    COMPREPLY=()",
    "    while IFS= read -r line; do",
    "        if [[ $line == :* ]]; then",
    "            directive=${line#:}",
    "            continue",
    "        fi",
    '        value=$flag${line%%"$tab"*}',
    '        if [[ $value == "$cur"* ]]; then COMPREPLY+=("${value#"$prefix"}"); fi',
    '    done < <(agentauth complete -- "${words[@]:1}" 2>/dev/null </dev/null)',
    "    if ((directive == 0)); then compopt -o default 2>/dev/null; fi",
    "}",
    "complete -F __agentauth_complete agentauth",
  ],
  zsh: [
    "#compdef agentauth",
    "# zsh completion for agentauth: source <(agentauth completion zsh), after compinit",
    "_agentauth() {",
    "    local -a answer",
    '    answer=(${(f)"$(agentauth complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null </dev/null)"})',
    "    if [[ $PREFIX == --*=* ]]; then compset -P 1 '*='; fi",
    "    if [[ $answer == :0 ]]; then _files; return; fi",
    "    # _describe takes the text after the first bare colon as the description.",
    "    answer=(${answer[1,-2]%$'\\t'})",
    "    answer=(${answer//:/\\\\:})",
    "    answer=(${answer/$'\\t'/:})",
    "    _describe -t agentauth agentauth answer",
    "}",
    "# Loaded from $fpath, complete at once; sourced, register the function.",
    'if [[ ${funcstack[1]} == _agentauth ]]; then _agentauth "$@"; else compdef _agentauth agentauth; fi',
  ],
  /** For 5.1 or later. */
  powershell: [
    "# PowerShell completion for agentauth: agentauth completion powershell | Out-String | Invoke-Expression",
    "Register-ArgumentCompleter -Native -CommandName agentauth -ScriptBlock {",
    "    param($wordToComplete, $commandAst, $cursorPosition)",
    "    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |",
    "        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.Extent.Text })",
    "    # Up to PowerShell 7.2 an empty argument is left out unless it is quoted.",
    "    $empty = if ($PSVersionTable.PSVersion -lt [version]'7.3') { '\"\"' } else { '' }",
    "    $words += if ($wordToComplete) { $wordToComplete } else { $empty }",
    "    $flag = if ($wordToComplete -match '^(--[^=]+=)') { $Matches[1] } else { '' }",
    "    foreach ($line in @(& agentauth complete -- @words 2>$null)) {",
    "        if ($line.StartsWith(':')) { continue }",
    '        $value, $about = $line -split "`t", 2',
    "        $text = $flag + $value",
    '        if ($text -notmatch \'^[\\w.:/=+-]+$\') { $text = "\'" + $text.Replace("\'", "\'\'") + "\'" }',
    "        if (-not $about) { $about = $value }",
    "        [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)",
    "    }",
    "}",
  ],
};

export interface CompletionOptions {
  shell: "bash" | "zsh" | "fish" | "powershell";
}

/** `completion`: the script for a shell. */
export async function runCompletion({ shell }: CompletionOptions, { io }: CommandContext): Promise<undefined> {
  const own = OWN_SCRIPTS[shell] ?? capturePrinted(() => script(shell, "agentauth", "agentauth"));
  await io.stdout.write(own.map((line) => `${line}\n`).join(""));
}

/** The lines that the package prints, synchronously: the output of a run is that of its IO, not of the process. */
function capturePrinted(work: () => void): string[] {
  const lines: string[] = [];
  const { log } = console;
  console.log = (line: string) => void lines.push(line);
  try {
    work();
  } finally {
    console.log = log;
  }
  return lines;
}

/**
 * `complete`: one candidate per line, a tab, and its description; the last line is a colon and 0 (complete files too), 4
 * (nothing else) or 1 (an error). Errors are silent: a message would corrupt the line that the user is typing.
 *
 * @param args what comes after the program's name; the last one is the one to complete, and may be empty
 */
export async function runComplete(root: Command, args: readonly string[], context: CommandContext): Promise<undefined> {
  const lines = await complete(root, args, context).catch(() => [":1"]);
  await context.io.stdout.write(lines.map((line) => `${line}\n`).join(""));
}

async function complete(root: Command, args: readonly string[], context: CommandContext): Promise<string[]> {
  const current = args.at(-1) ?? "";
  const before = args.slice(0, -1);
  // What comes after "--" is another program's.
  if (before.includes("--")) return [":0"];
  let end = ":4";
  const engine = engineFor(root, await knownValues(root, args, context), () => {
    end = ":0";
  });
  // The engine takes the word after a flag that has its value in the same word for its value.
  const apart = before.filter((word) => !/^(?:--[\w-]+=|-\w.)/.test(word));
  // A single dash may start a short or a long flag.
  const lines = (current === "-" ? ["-", "--"] : [current]).flatMap((word) =>
    capturePrinted(() => engine.parse([...apart, word])),
  );
  return [...lines.filter((line) => !line.startsWith(":")), end];
}

type Values = Readonly<Record<string, readonly string[]>>;

/** The command tree as the engine knows it: the engine does not inherit flags, so each command also gets the root's. */
function engineFor(root: Command, known: Values, onFile: () => void): RootCommand {
  const engine = new RootCommand();
  const visit = (command: Command, path: string) => {
    const target: EngineCommand = path === "" ? engine : engine.command(path, command.description());
    const help = command.createHelp();
    for (const option of [...help.visibleOptions(command), ...help.visibleOptions(root)]) {
      const { long = "", short, flags, required, argChoices } = option;
      const alias = short?.slice(1);
      const values = valuesFor(() => {
        if (/<(?:file|path|folder)>/.test(flags)) onFile();
        return argChoices ?? known[long];
      });
      target.option(long.slice(2), option.description, required ? values : alias, alias);
    }
    for (const argument of command.registeredArguments) {
      const name = argument.name();
      const values = argument.argChoices ?? known[`${command.name()} ${name}`] ?? known[name];
      target.argument(
        name,
        valuesFor(() => values),
        argument.variadic,
      );
    }
    for (const child of help.visibleCommands(command)) visit(child, `${path} ${child.name()}`.trim());
  };
  visit(root, "");
  return engine;
}

/** The shells insert values unquoted: values that a shell would interpret are not offered. */
const SAFE = /^[\w.:/@%+,=][\w.:/@%+,=~-]*$/;

function valuesFor(read: () => readonly string[] | undefined) {
  return (add: (value: string, description: string) => void) => {
    for (const value of read() ?? []) if (SAFE.test(value)) add(value, "");
  };
}

/**
 * The values on this machine: of flags, and of operands, where the name of the command takes precedence. They are from
 * the settings, the sandbox and the stored logins: only files are read, no keychain, which may prompt for a password.
 */
async function knownValues(root: Command, args: readonly string[], context: CommandContext): Promise<Values> {
  const home = orUndefined(() => context.findHome());
  const config = orUndefined(() => readConfig(home));
  const sandbox = orUndefined(() => readSandboxState(home));
  const settings = Object.values(config?.profiles ?? {});
  const profiles = orUndefined(() => config && profileNames(config, home)) ?? [];
  const logins = await storedLogins(args, context).catch(() => []);
  const present = (values: readonly (string | null | undefined)[]) =>
    values.filter((value) => typeof value === "string");
  const domains = present([...settings.map(({ domain }) => domain), sandbox?.domain_id]);
  const pools = present([...settings.map(({ pool }) => pool), sandbox?.pool_id]);
  return {
    "--profile": profiles,
    "--account": present([...settings.map(({ account }) => account), sandbox?.account_id]),
    "--domain": domains,
    "--pool": pools,
    "--account-hint": present(logins.map(({ account }) => account)),
    "--browser": ["none"],
    mcp_url: present([...logins.map(({ server }) => server), sandbox?.mcp_url]),
    domain_id: domains,
    pool_id: pools,
    key: Object.keys(PROFILE_KEYS),
    method: ["GET"],
    "config host": Object.keys(MCP_HOSTS),
    "add host": Object.keys(MCP_HOSTS),
    "remove host": Object.keys(MCP_HOSTS),
    "use name": profiles,
    "delete name": profiles,
    "schema type": Object.keys(OUTPUT_TYPES),
    "help command": root.commands.map((command) => command.name()).filter((name) => name !== "complete"),
    ...listValues(args),
  };
}

/** What the contract has for the flags of a list: its fields, and the values of those that it documents. */
function listValues(args: readonly string[]): Values {
  const noun = (Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]).find((one) => args.includes(one));
  if (noun === undefined) return {};
  const { fields, nested = [] } = COLUMNS[noun];
  const { status = [], session_type = [] } = documentedValues(noun);
  // A list of columns is one word: what is offered begins with those that are typed.
  const typed = /^(?:--columns=)?(.*,)?/.exec(args.at(-1) ?? "")?.[1] ?? "";
  const columns = [...new Set([...fields, ...nested])].map((path) => typed + path);
  return { "--columns": columns, "--sort": SORT_FIELDS[noun], "--status": status, "--session-type": session_type };
}

async function storedLogins(args: readonly string[], context: CommandContext) {
  const at = args.indexOf("--profile");
  const named = at < 0 ? undefined : args[at + 1];
  const run = context.with({ flags: named === undefined ? {} : { profile: named } });
  if (run.storeChoice().value !== "file") return [];
  return fileStore(run.home()).list({ profile: run.settings().profile.value });
}
