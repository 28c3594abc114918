import type { LoginDisplay } from "../../login/login-display.js";
import type { Io } from "../io/io.js";
import { hasHyperlinks, isAscii } from "../io/terminal-features.js";

/** A login on the terminal of stderr. */
export function loginDisplay(io: Pick<Io, "stderr" | "env">): LoginDisplay {
  const { stderr, env } = io;
  // A closed stderr is not a failure.
  const print = (text: string) => void stderr.write(text).catch(() => {});
  return {
    link(url) {
      const text = hasHyperlinks(env) ? `\u001b]8;;${url}\u001b\\${url}\u001b]8;;\u001b\\` : url;
      print(`  ${text}\n`);
    },
    async qrCode(text) {
      // Without colours of its own, the code would be inverted on every other terminal.
      if (isAscii(env) || !stderr.colors.isColorSupported) return false;
      const { qrLines } = await import("./qr-code.js");
      const { columns, lines } = qrLines(text);
      if (lines.length >= stderr.rows || columns > stderr.columns) return false;
      print(`${lines.join("\n")}\n\n`);
      return true;
    },
  };
}
