// docs/servers.md: the servers of the last run of the lab, and the recorded ones; and what docs/conformance.md says of that run.

/**
 * The text of the page.
 *
 * @param servers the recorded servers, each with its `command`
 * @param run the results of the last whole run of lab/foreign
 */
export function serversPage(servers, run) {
  const known = servers.filter(({ source }) => source !== undefined);
  const count = (list) => String(list.length);
  const parts = [
    "# Real servers",
    "<!-- Generated from lab/foreign/results.json and test/vendors by scripts/generate.mjs. Do not edit. -->",
    "## Run",
    `The programs of other projects that the package was run against on ${run.date}: at each, a login, its token, a list of ` +
      "tools, a call, a refresh and a logout, by the command line and by the package ([conformance](conformance.md)). Each " +
      "passed whose line says nothing else.",
    run.rows.map(resultOf).join("\n"),
    "## Recorded",
    `${count(servers)} shapes of MCP servers with their authorization servers, ${count(known)} of them from a public ` +
      "record: what the server published on that day. No such login was tried at the server itself, which may " +
      "have changed, and may refuse what no record shows. An address that a record does not name is an example.",
    `The tests replay each shape and log in there. As recorded, ${count(servers.filter(({ byDefault }) => byDefault))} ` +
      "need no flag. Where one is needed, the message of the refused login names it. The exception is stored with that " +
      "login, and no other check is disabled.",
    "`your-client` and `your-secret` are the client that the vendor registered for you. `your-approved-name` is the name " +
      "under which the vendor has approved your client. Use the name of another product only where that is allowed.",
    ...servers.map(cardOf),
  ];
  return `${parts.join("\n\n")}\n`;
}

function resultOf({ title, version = "", result, reason }) {
  const unlessPassed = result === "passed" ? "" : `: ${reason === undefined ? result : `${result}, ${reason}`}`;
  return `- ${title} ${version}${unlessPassed}`;
}

/** docs/conformance.md with the sentence about the last whole run. @param page the page as it is */
export function withForeignRun(page, { date, rows }) {
  const passed = rows.filter(({ result }) => result === "passed").length;
  const sentence = `The last whole run was on ${date}: ${passed} of ${rows.length} passed ([which, in which versions](servers.md#run)).`;
  return page.replace(/(?<=<!-- foreign -->\n)[\s\S]*?(?=\n<!-- \/foreign -->)/, sentence);
}

function cardOf({ title, source, date, about, command, refused }) {
  const record = source === undefined ? "no public source" : `[${date}](${source})`;
  const mark = command?.startsWith("AGENTAUTH_") ? "<!-- sh only: sets a variable -->\n\n" : "";
  const login = command ? `${mark}\`\`\`sh\n${command}\n\`\`\`` : `Refused: ${refused}.`;
  return `### ${title}\n\n${about.replace(/\.$/, "")} (${record}).\n\n${login}`;
}
