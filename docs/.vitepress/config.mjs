// The documentation site, built from docs/. Nothing of it is fetched from elsewhere when it is read.
import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";
import { fileLinks } from "./file-links.mjs";
import { NAVIGATION, SECTIONS } from "./pages.mjs";
import { wholeWords } from "./whole-words.mjs";

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

export default defineConfig({
  title: "agentauth",
  description: manifest.description,
  lang: "en",
  head: [["link", { rel: "icon", href: "/favicon.svg", type: "image/svg+xml" }]],
  srcExclude: ["api/**"],
  // typedoc writes its pages after VitePress has checked the links.
  ignoreDeadLinks: [/^\/api\//],
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config(md) {
      md.use(fileLinks);
      md.use(wholeWords);
      const fence = md.renderer.rules.fence;
      md.renderer.rules.fence = (tokens, index, ...rest) =>
        tokens[index].info.trim() === "mermaid"
          ? `<Mermaid code="${encodeURIComponent(tokens[index].content)}" />`
          : fence(tokens, index, ...rest);
    },
  },
  themeConfig: {
    nav: NAVIGATION,
    sidebar: SECTIONS,
    outline: [2, 3],
    search: {
      provider: "local",
      options: {
        // Eight hundred rows would make the index that every reader loads five times as large.
        _render: (text, env, md) => (env.relativePath === "security-table.md" ? "" : md.render(text, env)),
        // What proves comes after what shows. The browser gets the text of this function: it can name nothing else.
        miniSearch: {
          searchOptions: {
            boostDocument: (id) => (/\/(security-details|reliability-measurements)\b/.test(id) ? 0.2 : 1),
          },
        },
      },
    },
    footer: { message: `agentauth ${manifest.version}, MIT licence` },
  },
});
