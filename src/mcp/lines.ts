/** A line without its end; undefined in place of one that is longer than is accepted. */
export type Line = string | undefined;

const NEWLINE = 0x0a;

/**
 * The lines of a stream, as they come. One that is too long is passed over without being kept, and what follows it is
 * read as usual; the last line needs no end.
 *
 * @param maxBytes the longest line that is accepted
 */
export async function* readLines(source: AsyncIterable<Buffer | string>, maxBytes: number): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  let size = 0;
  const keep = (part: Buffer) => {
    size += part.length;
    if (size > maxBytes) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  const take = (): Line => {
    const line = size > maxBytes ? undefined : Buffer.concat(parts).toString("utf8");
    parts = [];
    size = 0;
    return line;
  };
  for await (const chunk of source) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
      keep(bytes.subarray(from, end));
      yield take();
      from = end + 1;
    }
    keep(bytes.subarray(from));
  }
  if (size > 0) yield take();
}
