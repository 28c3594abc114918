// Names in tables are never cut: a wide table scrolls in its own block. Commands continue on the next line, between words.

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
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const html = fence(tokens, index, ...rest);
    if (!/^(?:sh|powershell|console)\b/.test(tokens[index].info)) return html;
    return html.replace(/(?<=>)[^<]+/g, (text) => text.replace(/\S+/g, wholeUnlessLong));
  };
}

/** A browser breaks a flag at its hyphens; an address has to be broken where it is longer than a line. */
function wholeUnlessLong(word) {
  return word.length > 40 ? word : `<span class="word">${word}</span>`;
}
