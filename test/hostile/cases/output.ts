import { type HostileCase, LISTING, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";
import type { Run } from "../kit/watched.js";
import { SECRET_FIELDS } from "./secret-fields.js";

/** Text that controls a terminal, is invisible, or looks like other text. */
const HOSTILE = {
  csi: "\u001b[2J\u001b[31mred",
  osc8: "\u001b]8;;https://evil.example\u0007click\u001b]8;;\u0007",
  osc52: "\u001b]52;c;ZXZpbA==\u0007",
  dcs: "\u001bP+q544e\u001b\\\u001b_apc\u001b\\",
  c1: "\u009b31m\u0090x\u009c",
  controls: "a\u0007b\bc\u007fd\re\u0000f",
  bidi: "\u202egnp.exe\u202c\u2066x\u2069\u061c",
  invisible: "a\u200bb\u200fc\u2060d\ufeffe\u00ad",
  tags: "\u{e0001}\u{e0041}\u{e007f}",
  selectors: "a\ufe0e\u{e0100}",
  combining: `e${"\u0301".repeat(1000)}`,
  wide: "漢字 👩‍👩‍👧 가",
  lines: "one\u2028two\u2029three\u0085four",
  surrogate: "\ud800x",
  formula: '=HYPERLINK("https://evil.example","x")',
} as const;

const texts = Object.values(HOSTILE);
/** Texts that jq can represent. */
const written = texts.filter((text) => !text.includes("\ud800"));
const FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", '"=1', "＝1+1", "＋1", "－1", "＠x"];

/** A list with hostile titles. */
function titled(
  id: string,
  input: string,
  result: string,
  titles: readonly string[],
  format: readonly string[],
  check?: (run: Run, kit: Kit) => string[],
  over: Partial<HostileCase> = {},
): HostileCase {
  return {
    id,
    input,
    result,
    outcome: "ok",
    command: "devices",
    flags: format,
    cliOnly: true,
    arrange({ service }) {
      service.count = titles.length;
      service.pageSize = 5;
      service.list((page, offset) => {
        for (const [nth, item] of page.summaries.entries())
          Object.assign(item, { title: titles[offset + nth], status: titles[offset + nth] });
      });
    },
    requests: LISTING,
    check: (kit, run) => (run && check ? check(run, kit) : []),
    ...over,
  };
}

const titlesOf = (items: unknown) => (items as { title: string }[]).map(({ title }) => title);
const unchanged = (found: unknown) =>
  unless({ "the parsed output equals the input": JSON.stringify(found) === JSON.stringify(texts) });

/** The cells of a CSV text (RFC 4180). */
function csvRows(text: string): string[][] {
  const cells = [...text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)];
  const rows: string[][] = [[]];
  for (const [, quoted, plain = "", end] of cells) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === "\r\n") rows.push([]);
  }
  return rows.filter((row) => row.length > 1);
}

const formats: HostileCase[] = [
  ...(["table", "wide", "plain", "id"] as const).map((format, nth) =>
    titled(
      `O1${"abcd"[nth]}`,
      `titles and states full of escape sequences, bidirectional, invisible and combining characters, as ${format}`,
      "printed as visible escapes, one line per item",
      texts,
      ["-o", format],
      (run) =>
        unless({
          "every item has one line":
            run.stdout.trimEnd().split("\n").length >= texts.length &&
            (format !== "id" || run.stdout.trimEnd().split("\n").length === texts.length),
        }),
    ),
  ),
  titled(
    "O4a",
    "the same as JSON",
    "escaped; it parses back unchanged",
    texts,
    ["-o", "json", "--columns", "title"],
    (run) => unchanged(titlesOf(JSON.parse(run.stdout))),
  ),
  titled("O4b", "the same as NDJSON", "escaped; it parses back unchanged", texts, ["-o", "ndjson"], (run) =>
    unchanged(
      titlesOf(
        run.stdout
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as unknown),
      ),
    ),
  ),
  titled(
    "O5a",
    "titles that a spreadsheet runs as formulas, as CSV",
    "each has a ' before it",
    FORMULAS,
    ["-o", "csv", "--columns", "title"],
    (run) =>
      unless({
        "no cell is a formula": csvCells(run).every((cell) => !/^[\s"]*[=+\-@\t\r＝＋－＠]/.test(cell)),
        "none is missing": csvCells(run).length === FORMULAS.length,
      }),
  ),
  titled(
    "O6",
    "titles with quotes, commas and line breaks, as CSV",
    "quoted by RFC 4180; they parse back unchanged",
    ['a"b', "a,b", "a\r\nb", "a\nb", '","'],
    ["-o", "csv", "--columns", "title,id"],
    (run) => {
      const cells = csvRows(run.stdout)
        .slice(1)
        .map(([title]) => title);
      return unless({
        "the parsed output equals the input":
          JSON.stringify(cells) === JSON.stringify(['a"b', "a,b", "a\r\nb", "a\nb", '","']),
      });
    },
  ),
  titled("O12a", "COLUMNS=0, TERM=dumb, LANG=C", "printed", texts, ["-o", "table"], undefined, {
    environment: { COLUMNS: "0", TERM: "dumb", LANG: "C" },
  }),
  titled(
    "O12b",
    "COLUMNS=99999999999 and FORCE_COLOR=3 with hostile titles",
    "printed; no colours except those of agentauth",
    ["plain"],
    ["-o", "table", "--no-color"],
    undefined,
    { environment: { COLUMNS: "99999999999", FORCE_COLOR: "3" } },
  ),
  titled("O12c", "--jq that asks for hostile text", "printed as escaped JSON", written, ["--jq", ".[].title"], (run) =>
    unless({ "one line per title": run.stdout.trimEnd().split("\n").length === written.length }),
  ),
];

function csvCells(run: Run): string[] {
  return csvRows(`${run.stdout.replaceAll("\r\n", ",end\r\n")}`)
    .slice(1)
    .map(([cell = ""]) => cell);
}

const secrets: HostileCase[] = [
  ...(["table", "wide", "plain", "json", "ndjson", "csv"] as const).map(
    (format, nth): HostileCase => ({
      id: `O7${"abcdef"[nth]}`,
      input: `a client_secret in every place where the service may put one, as ${format}`,
      result: "masked",
      outcome: "ok",
      command: "devices",
      flags: ["-o", format],
      cliOnly: true,
      arrange(kit) {
        kit.service.list((page) => {
          for (const item of page.summaries) Object.assign(item, SECRET_FIELDS(kit.canaries.get("registered-secret")));
        });
      },
      requests: LISTING,
    }),
  ),
  {
    id: "O7h",
    input: "--show-secrets with CI set",
    result: "refused: build logs are widely readable",
    outcome: "usage",
    command: "devices",
    flags: ["-o", "json", "--show-secrets"],
    cliOnly: true,
    environment: { CI: "true" },
    requests: [],
  },
  {
    id: "O8",
    input: "a whole login with --debug",
    result: "every step is logged, without secrets",
    outcome: "ok",
    flags: ["--debug"],
    cliOnly: true,
    says: [
      /^\+ challenge: POST /m,
      /^\+ resource metadata: GET /m,
      /^\+ server metadata: GET /m,
      /^\+ registration: POST /m,
      /^> POST \S+\/token$/m,
      /^< 200 \S+\/token in /m,
    ],
  },
  {
    id: "O8b",
    input: "a refresh with --debug",
    result: "logged without secrets",
    outcome: "ok",
    command: "token",
    flags: ["--debug", "--force-refresh"],
    cliOnly: true,
    prints: ["access-token"],
    arrange: (kit) => kit.saveLogin(),
    says: [/^refreshing the token for \S+ at \S+\/token$/m, /^> POST \S+\/token$/m, /^< 200 \S+\/token in /m],
  },
  {
    id: "O3a",
    input: "a listing that fails with --debug, and an error text full of escape sequences and the API token",
    result: "shown escaped and masked",
    outcome: "remote",
    command: "devices",
    flags: ["--debug"],
    cliOnly: true,
    arrange(kit) {
      const message = `${texts.join(" ")} Bearer ${kit.canaries.get("api-token")}`;
      kit.service.list(() => ({ status: 403, json: { status: "error", code: "not_permitted", message } }));
    },
    says: ["\\e[2J", "********"],
  },
  {
    id: "O3b",
    input: "the same, as a JSON error",
    result: "one line of JSON, escaped and masked",
    outcome: "remote",
    command: "devices",
    flags: ["-o", "json"],
    cliOnly: true,
    arrange(kit) {
      const message = `${texts.join(" ")} Bearer ${kit.canaries.get("api-token")}`;
      kit.service.list(() => ({ status: 403, json: { status: "error", code: "not_permitted", message } }));
    },
    check: (_, run) =>
      unless({
        "it is one line of JSON":
          run === undefined || (JSON.parse(run.stderr) as { error: { exit_code: number } }).error.exit_code === 6,
      }),
  },
];

const interrupted: HostileCase[] = (["SIGINT", "SIGTERM"] as const).map((signal, nth) => ({
  id: `O11${"ab"[nth]}`,
  input: `${signal} in the middle of a login`,
  result: "the command exits; the listener is closed, nothing is stored",
  outcome: nth === 0 ? "aborted" : "terminated",
  async drive(kit) {
    const run = kit.start(["login", kit.mcp.url, "--browser", "none"]);
    await kit.untilPrinted(run, /^Waiting for the login/m);
    run.child.kill(signal);
    return run.ended;
  },
  store: "logins",
}));

/** Hostile text in the output, and interrupted runs. */
export const output: readonly HostileCase[] = [...formats, ...secrets, ...interrupted];
