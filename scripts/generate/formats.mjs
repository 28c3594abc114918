// The table of the output formats in docs/lists.md, between two comments.

const START = "<!-- formats: written by npm run generate -->";
const END = "<!-- /formats -->";

/** The page with the current table of formats. */
export function withFormats(page, formats) {
  const start = page.indexOf(START);
  const end = page.indexOf(END);
  if (start < 0 || end < start) throw new Error(`docs/lists.md has no "${START}" before "${END}"`);
  const rows = formats.map(
    ({ name, description }) => `| \`${name}\` | ${description.replace(/--[\w-]+/g, "`$&`")} |\n`,
  );
  return `${page.slice(0, start + START.length)}\n\n| \`-o\` | |\n|---|---|\n${rows.join("")}\n${page.slice(end)}`;
}
