// A loop that fetches pages and serializes each item as a line of JSON. The first argument selects the output: `none`
// drops the lines, `page` writes the lines of a page at once, `line` prints each one with console.log.
import { pageUrl, TOKEN } from "../lib/side.mjs";

const [how, url, pageSize] = process.argv.slice(2);
let dropped = 0;

const LEAVE = {
  none: (lines) => {
    for (const line of lines) dropped += line.length;
  },
  page: (lines) => process.stdout.write(`${lines.join("\n")}\n`),
  line: (lines) => {
    for (const line of lines) console.log(line);
  },
};

for (let offset = 0; offset !== null; ) {
  const response = await fetch(pageUrl(url, offset, Number(pageSize)), {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const { summaries, pagination } = await response.json();
  LEAVE[how](summaries.map((item) => JSON.stringify(item)));
  offset = pagination.next_page_offset;
}
if (how === "none") console.log(dropped > 0 ? "done" : "no items");
