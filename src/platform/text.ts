import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";

/**
 * Text that was decoded as UTF-8, without the byte order mark that editors and shells of Windows write.
 *
 * @param source what it comes from, for the error
 * @throws `AgentAuthError` `usage` for text that is UTF-16, which `>` of Windows PowerShell writes
 */
export function withoutByteOrderMark(text: string, source: string): string {
  if (text.startsWith("\ufeff")) return text.slice(1);
  // Neither byte of a mark of UTF-16 is UTF-8.
  if (!text.startsWith("\ufffd\ufffd")) return text;
  throw new AgentAuthError("usage", `${quote(source).slice(1, -1)} is UTF-16`, {
    class: "usage",
    hint: "save it as UTF-8; PowerShell writes that with Set-Content -Encoding utf8",
  });
}
