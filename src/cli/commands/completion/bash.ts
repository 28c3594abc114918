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
