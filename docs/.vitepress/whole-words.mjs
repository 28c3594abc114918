// Names in tables are never cut: a wide table scrolls in its own block.

/** A plugin of markdown-it. */
export function wholeWords(md) {
  md.core.ruler.push("whole-words", ({ tokens }) => {
    let isTable = false;
    for (const { type, children } of tokens) {
      if (type === "table_open" || type === "table_close") isTable = type === "table_open";
      if (!isTable) continue;
      for (const child of children ?? []) if (child.type === "code_inline") child.meta = { isWhole: true };
    }
  });
  const codeInline = md.renderer.rules.code_inline;
  md.renderer.rules.code_inline = (tokens, index, ...rest) => {
    const { meta, content } = tokens[index];
    if (!meta?.isWhole) return codeInline(tokens, index, ...rest);
    // A browser breaks a name at its hyphens and slashes, but never inside of a word that must not wrap.
    const words = content.split(" ").map((word) => `<span class="word">${md.utils.escapeHtml(word)}</span>`);
    return `<code v-pre>${words.join(" ")}</code>`;
  };
}
