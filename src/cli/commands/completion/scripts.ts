// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the shell expands them.

/**
 * The script for bash. It needs only bash (3.2 or later), and evaluates neither the typed words nor the candidates, since
 * both may contain "$(…)". A word ends at a blank, also between quotes.
 */
export const BASH_SCRIPT = [
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
  "",
].join("\n");

/**
 * The script for PowerShell (5.1 or later). It passes the typed words on as they are, and never evaluates them: with
 * `Invoke-Expression`, `$(…)` on the line would run at Tab.
 */
export const POWERSHELL_SCRIPT = [
  "# PowerShell completion for agentauth: agentauth completion powershell | Out-String | Invoke-Expression",
  "Register-ArgumentCompleter -Native -CommandName agentauth -ScriptBlock {",
  "    param($wordToComplete, $commandAst, $cursorPosition)",
  "    $words = @(foreach ($element in @($commandAst.CommandElements | Select-Object -Skip 1)) {",
  "        if ($element.Extent.EndOffset -ge $cursorPosition) { continue }",
  "        if ($element -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $element.Value }",
  "        else { $element.Extent.Text }",
  "    })",
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
  "",
].join("\n");

/** The script for zsh. Candidates may contain colons, as URLs do. */
export const ZSH_SCRIPT = [
  "#compdef agentauth",
  "# zsh completion for agentauth: source <(agentauth completion zsh), after compinit",
  "_agentauth() {",
  "    local line value about directive=4",
  "    local -a typed described",
  '    typed=("${(@)words[2,CURRENT]}")',
  "    typed[-1]=$PREFIX",
  "    if [[ $PREFIX == --*=* ]]; then compset -P 1 '*='; fi",
  "    while IFS= read -r line; do",
  "        if [[ $line == :* ]]; then",
  "            directive=${line#:}",
  "            continue",
  "        fi",
  "        value=${line%%$'\\t'*}",
  "        about=${line#*$'\\t'}",
  "        # _describe takes the text after a colon as the description.",
  '        described+=("${value//:/\\\\:}${about:+:$about}")',
  '    done < <(agentauth complete -- "${typed[@]}" 2>/dev/null </dev/null)',
  "    if ((${#described})); then",
  "        _describe -t agentauth agentauth described",
  "    elif ((directive == 0)); then",
  "        _files",
  "    fi",
  "}",
  "# Loaded from $fpath, complete at once; sourced, register the function.",
  'if [[ ${funcstack[1]} == _agentauth ]]; then _agentauth "$@"; else compdef _agentauth agentauth; fi',
  "",
].join("\n");
