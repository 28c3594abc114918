// Runs the built command on a terminal of its own, and reads what the screen shows then.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import xterm from "@xterm/headless";

const BIN = fileURLToPath(new URL("../../../bin/agentauth.cjs", import.meta.url));
const ROWS = 60;

/**
 * The lines of the screen after commands, each as runs of one style.
 *
 * @param scene `commands`, `columns`, and `env` of the commands
 * @param rename replaces text of this run, such as folders, before it is drawn; widths that matter must stay
 */
export async function screenOf({ commands, columns }, env, rename) {
  const terminal = new xterm.Terminal({ cols: columns, rows: ROWS, allowProposedApi: true, convertEol: false });
  for (const command of commands) {
    await write(terminal, `\x1b[1;32m$\x1b[0m \x1b[1magentauth ${rename(command)}\x1b[0m\r\n`);
    await write(terminal, rename(await outputOf(command, columns, env)));
  }
  const buffer = terminal.buffer.active;
  const lines = Array.from({ length: buffer.length }, (_, row) => runsOf(buffer.getLine(row), columns));
  while (lines.at(-1)?.length === 0) lines.pop();
  return lines;
}

function write(terminal, text) {
  return new Promise((done) => terminal.write(text, done));
}

/** What the command prints on a terminal of this width. */
export async function outputOf(command, columns, env) {
  const line = `stty cols ${columns} rows ${ROWS} && exec "${process.execPath}" "${BIN}" ${command}`;
  const child = spawn("script", ["-qec", line, "/dev/null"], { env, stdio: ["pipe", "pipe", "inherit"] });
  const chunks = [];
  child.stdout.on("data", (chunk) => chunks.push(chunk));
  const [code] = await once(child, "close");
  const text = Buffer.concat(chunks).toString("utf8");
  if (code !== 0) throw new Error(`agentauth ${command} ended with ${code}:\n${text}`);
  return text;
}

function runsOf(line, columns) {
  const runs = [];
  for (let column = 0; column < columns; column++) {
    const cell = line?.getCell(column);
    if (cell === undefined || cell.getWidth() === 0) continue;
    const style = { color: colorOf(cell), isBold: cell.isBold() !== 0, isDim: cell.isDim() !== 0 };
    const last = runs.at(-1);
    const text = cell.getChars() || " ";
    // Letters of other widths are placed by themselves, so that what follows stays in its column.
    const isPlain = /^[\x20-\x7e\u2500-\u25ff]$/.test(text);
    if (last?.isPlain && isPlain && last.key === JSON.stringify(style)) {
      last.text += text;
      last.width++;
    } else runs.push({ ...style, key: JSON.stringify(style), column, text, width: cell.getWidth(), isPlain });
  }
  while (runs.at(-1)?.text.trim() === "") runs.pop();
  return runs;
}

/** The number of one of the sixteen colours of a terminal; undefined for the default one. */
function colorOf(cell) {
  return cell.isFgPalette() ? cell.getFgColor() : undefined;
}
