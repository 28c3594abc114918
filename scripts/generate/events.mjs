// The fields of the events in docs/events.md, between two comments.

const START = "<!-- events: written by npm run generate -->";
const END = "<!-- /events -->";

/** The page with the current fields. @param events the table of src/telemetry/events.ts */
export function withEvents(page, events) {
  const start = page.indexOf(START);
  const end = page.indexOf(END);
  if (start < 0 || end < start) throw new Error(`docs/events.md has no "${START}" before "${END}"`);
  const seen = new Map();
  const texts = Object.entries(events).map(([type, { description, fields }]) => {
    const own = Object.entries(fields).filter(([, field]) => !seen.has(field));
    const shared = Object.entries(fields).filter(([, field]) => seen.has(field));
    for (const [, field] of own) seen.set(field, type);
    const lines = own.map(([name, field]) => `| \`${name}\` | ${meaning(field)} |\n`);
    if (lines.length > 0) lines.unshift("| field | |\n|---|---|\n");
    for (const before of new Set(shared.map(([, field]) => seen.get(field)))) {
      const names = shared.filter(([, field]) => seen.get(field) === before).map(([name]) => `\`${name}\``);
      lines.push(`\nAs of \`${before}\`: ${names.join(", ")}.\n`);
    }
    return `### \`${type}\`\n\n${sentence(description)}\n\n${lines.join("")}`;
  });
  return `${page.slice(0, start + START.length)}\n\n${texts.join("\n")}\n${page.slice(end)}`;
}

function meaning({ description, values, optional }) {
  const listed = values === undefined ? [] : Object.entries(values).map(([value, text]) => `\`${value}\`: ${text}`);
  const what = optional ? `${description} (optional)` : description;
  return listed.length === 0 ? what : `${what}. ${listed.join("; ")}`;
}

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}
