// docs/servers.md: the recorded servers.

/** The text of the page. @param servers the recorded servers, each with its `command` */
export function serversPage(servers) {
  const known = servers.filter(({ source }) => source !== undefined);
  const count = (list) => String(list.length);
  const parts = [
    "# Real servers, as recorded",
    "<!-- Generated from test/vendors by scripts/generate.mjs. Do not edit. -->",
    `${count(servers)} shapes of MCP servers with their authorization servers, ${count(known)} of them from a public ` +
      "record: what the server published on that day. No login of this table was tried at the server itself, which may " +
      "have changed, and may refuse what no record shows. An address that a record does not name is an example.",
    `The tests replay each shape and log in there. As recorded, ${count(servers.filter(({ byDefault }) => byDefault))} ` +
      "need no flag. Where one is needed, the message of the refused login names it. The exception is stored with that " +
      "login, and no other check is disabled.",
    "`your-client` and `your-secret` are the client that the vendor registered for you. `your-approved-name` is the name " +
      "under which the vendor has approved your client. Use the name of another product only where that is allowed.",
    table(["server", "record", "login as recorded", "what is special", "command"], servers.map(rowOf)),
  ];
  return `${parts.join("\n\n")}\n`;
}

function rowOf({ title, source, date, byDefault, about, command, refused }) {
  const record = source === undefined ? "no public source" : `[${date}](${source})`;
  return [
    title,
    record,
    byDefault ? "without flags" : command ? "with flags" : "refused",
    about,
    command ? `\`${command}\`` : `none: ${refused}`,
  ];
}

function table(header, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}
