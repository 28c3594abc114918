// Links from docs/ to other files of the repository lead to their text in the site, under /files/.
import { cpSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const LINK = /\]\(\.\.\/([^)#]+)/g;

/** A plugin of markdown-it. */
export function fileLinks(md) {
  md.core.ruler.push("file-links", ({ tokens }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.attrGet("href");
      if (token.type !== "link_open" || !href?.startsWith("../")) continue;
      token.attrSet("href", `/files/${published(href.slice("../".length))}`);
      token.attrSet("target", "_self");
    }
  });
}

/** Copies every file that a page of docs/ links to. */
export function copyLinkedFiles(pages, site) {
  const linked = pages.flatMap((page) => [...readFileSync(page, "utf8").matchAll(LINK)].map(([, path]) => path));
  for (const path of new Set(linked))
    cpSync(join(root, path), join(site, "files", published(path)), { recursive: true });
}

/** Browsers show text, and download what they do not know, such as TypeScript. */
function published(path) {
  return path.endsWith("/") ? path : join(dirname(path), `${path.split("/").at(-1)}.txt`);
}
