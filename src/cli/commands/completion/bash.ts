// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are the shell's.

/**
 * The script for bash. It needs nothing beside bash (3.2 or later), and evaluates neither what was typed nor what is
 * offered, either of which may have "$(…)" in it.
 */
export const BASH_SCRIPT = [
  "# bash completion for agentauth: source <(agentauth completion bash)",
  "__agentauth_complete() {",
  "    local rest=${COMP_LINE:0:COMP_POINT} words=() tab=$'\\t' flag= prefix= directive=4 piece gap i cur line value",
  '    # Bash cuts words at ":" and "=" too: they are put together again as they were typed.',
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
  "    # What stands before the last cut is on the line already.",
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
