// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the shell expands them.

/**
 * The script for bash. It needs only bash (3.2 or later), and evaluates neither the typed words nor the candidates, since
 * both may contain "$(…)".
 */
export const BASH_SCRIPT = [
  '# bash completion for agentauth: eval "$(agentauth completion bash)"; bash 3.2 of macOS cannot source <(...)',
  "__agentauth_complete() {",
  "    local rest=${COMP_LINE:0:COMP_POINT} words=() tab=$'\\t' flag= prefix= directive=4 piece gap i cur line value",
  '    # Bash also splits words at ":" and "=": join them again as they were typed.',
  "    for ((i = 0; i <= COMP_CWORD; i++)); do",
  "        gap=${rest%%[![:space:]]*}",
  '        rest=${rest#"$gap"}',
  "        piece=${COMP_WORDS[i]}",
  "        if ((i == COMP_CWORD)); then piece=$rest; fi",
  '        rest=${rest#"$piece"}',
  '        if ((i == 0)) || [[ -n $gap ]]; then words+=("$piece"); else words[${#words[@]}-1]+=$piece; fi',
  "    done",
  "    cur=${words[${#words[@]}-1]}",
  "    if [[ $cur == --*=* ]]; then flag=${cur%%=*}=; fi",
  "    # The text before the last split is on the line already.",
  "    for piece in : =; do",
  '        if [[ $COMP_WORDBREAKS == *"$piece"* && $cur == *"$piece"* ]]; then',
  '            gap=${cur%"${cur##*"$piece"}"}',
  "            if ((${#gap} > ${#prefix})); then prefix=$gap; fi",
  "        fi",
  "    done",
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
