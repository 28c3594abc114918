import { DEVICE } from "../../../src/cli/output/columns.js";
import { createWriter, type OutputOptions } from "../../../src/cli/output/writer.js";
import type { Format } from "../../../src/profile/settings.js";
import { hideClientSecret } from "../../../src/redact.js";
import { createMemoryIo, type MemoryIo, type MemoryIoOptions } from "../../helpers/memory-io.js";

/** The moment that relative times are measured from: 2023-11-17T22:13:20Z, in milliseconds. */
export const NOW = 1_700_259_200_000;

/** A device as the SDK gives it: its client secret hides behind a prototype. */
export function device(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    account_id: "acc_1",
    id: "dev_1",
    title: "Laptop",
    status: "active",
    session_type: "mcp",
    type: "device",
    last_seen: { at: 1_700_000_000, country_code: "DE", city: "Köln" },
    dynamic_client_details: hideClientSecret({ client_secret: "planted-secret", title: "Agent" }),
    ...fields,
  };
}

export interface Printed {
  out: string;
  err: string;
  io: MemoryIo;
}

/** What the terminal is, what the flags are, and how the list comes and ends. */
export interface How {
  io?: MemoryIoOptions;
  flags?: Partial<OutputOptions>;
  pageSize?: number;
  abort?: boolean;
}

/** A terminal of 80 columns without colour. */
export const TERMINAL: MemoryIoOptions = { tty: true, columns: 80, env: { NO_COLOR: "1" } };

/** Prints a list of items as a list command does, a page at a time. */
export async function print(format: Format, items: readonly object[], how: How = {}): Promise<Printed> {
  const { pageSize = 50, abort = false } = how;
  const io = createMemoryIo(how.io);
  const own = how.flags?.columns === undefined ? {} : { screenColumns: undefined };
  const writer = createWriter(format, { ...DEVICE, ...own, now: () => NOW, ...how.flags }, io);
  for (let start = 0; start < items.length; start += pageSize) await writer.write(items.slice(start, start + pageSize));
  await (abort ? writer.abort() : writer.end());
  await io.stderr.write("");
  return { out: io.out(), err: io.err(), io };
}

/** Every character of Unicode, 64 to a text, and lone surrogates. */
export function everyCharacter(): string[] {
  const texts = ["\ud800 \udfff"];
  for (let start = 0; start <= 0x10ffff; start += 64) {
    if (start >= 0xd800 && start < 0xe000) continue;
    texts.push(String.fromCodePoint(...Array.from({ length: 64 }, (_, index) => start + index)));
  }
  return texts;
}

const HOSTILE = /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Bidi_Control}\u2800]|[^\S ]/gu;

/** The characters of a text that a terminal could act on, or that a user could not see. */
export function hostileIn(text: string): string[] {
  const unusual = text.match(/[^\x20-\x7e]+/g)?.join("") ?? "";
  return unusual.match(HOSTILE) ?? [];
}

/** The width of a line in terminal columns, where every character of `wide` takes two and every one of `none` takes none. */
export function columnsOf(line: string, wide: RegExp, none: RegExp): number {
  const rest = line.replace(none, "");
  return [...rest].length + [...rest.matchAll(wide)].length;
}

/** RFC 4180, read strictly and by other code than what writes it. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let at = 0;
  while (at < text.length) {
    const row: string[] = [];
    for (;;) {
      if (text[at] === '"') {
        const quoted = /"((?:[^"]|"")*)"/y;
        quoted.lastIndex = at;
        const found = quoted.exec(text);
        if (found === null) throw new SyntaxError("a quoted field does not end");
        row.push((found[1] ?? "").replaceAll('""', '"'));
        at = quoted.lastIndex;
      } else {
        const bare = /[^",\r\n]*/y;
        bare.lastIndex = at;
        row.push(bare.exec(text)?.[0] ?? "");
        at = bare.lastIndex;
      }
      if (text[at] !== ",") break;
      at += 1;
    }
    if (!text.startsWith("\r\n", at)) throw new SyntaxError(`a record does not end with CRLF at ${at}`);
    at += 2;
    rows.push(row);
  }
  return rows;
}
