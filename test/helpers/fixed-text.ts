/** What a run printed, with placeholders for what no two runs have in common: ports, folders, and ids that are made. */
export function fixedText(text: string): string {
  return text
    .replace(/127\.0\.0\.1:\d{4,5}\b/g, "<address>")
    .replace(/[^\s"'=:]*[/\\]f-\w{6}\b/g, "<folder>")
    .replace(/\breq_\w+/g, "<request_id>")
    .replace(/\b(login) "[\w-]{12}"/g, '$1 "<login_id>"')
    .replace(/\b(acc|dom|pool|dev)_[a-z\d]{6,}\b/g, "<$1_id>");
}
