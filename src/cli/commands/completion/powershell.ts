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
