// A handwritten loop: the reference of the comparison.
import { pageUrl, side, TOKEN } from "../lib/side.mjs";

await side(async ({ url, pageSize }, take) => {
  for (let offset = 0; offset !== null; ) {
    const response = await fetch(pageUrl(url, offset, pageSize), {
      headers: { accept: "application/json", authorization: `Bearer ${TOKEN}` },
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    const { summaries, pagination } = await response.json();
    for (const item of summaries) take(item);
    offset = pagination.next_page_offset;
  }
});
