// docs/servers.md: the recorded servers, from the catalogue of the sandbox.

/** The text of the page. @param servers rows of the catalogue, each with its `command` */
export function serversPage(servers) {
  const known = servers.filter(({ source }) => source !== undefined);
  const count = (list) => String(list.length);
  const parts = [
    "# Real servers",
    "<!-- Generated from src/sandbox/vendors by scripts/generate.mjs. Do not edit. -->",
    `${count(servers)} shapes of MCP servers with their authorization servers. ${count(known)} of them come from a ` +
      "public record: they have what the server published on that day, which may differ from today. An address that a " +
      "record does not name is an example. The tests replay each shape.",
    `${count(servers.filter(({ byDefault }) => byDefault))} work without flags. Where a flag is needed, the message of ` +
      "the refused login names it. The exception is stored with that login, and no other check is disabled.",
    "The sandbox takes any of these shapes on this machine, for tests of any MCP client: [sandbox.md](sandbox.md).",
    "```sh\nagentauth sandbox start --like github\nagentauth sandbox vendors --json\n```",
    "`your-client` and `your-secret` are the client that the vendor registered for you. `your-approved-name` is the name " +
      "under which the vendor has approved your client. Use the name of another product only where that is allowed.",
    table(["`--like`", "server", "record", "by default", "what is special", "command"], servers.map(rowOf)),
  ];
  return `${parts.join("\n\n")}\n`;
}

function rowOf({ id, title, source, date, byDefault, about, command, refused }) {
  const record = source === undefined ? "no public source" : `[${date}](${source})`;
  return [
    `\`${id}\``,
    title,
    record,
    byDefault ? "works" : "refused",
    about,
    command ? `\`${command}\`` : `none: ${refused}`,
  ];
}

function table(header, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}
