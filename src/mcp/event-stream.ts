/** An event of a stream. */
export interface StreamEvent {
  /** Where a broken stream is resumed; undefined if the stream has named no event. */
  id: string | undefined;
  /** The message; empty in an event that has an id alone. */
  data: string;
  /** The type; undefined stands for `message`. */
  type: string | undefined;
  /** Milliseconds to wait before resuming; undefined if the stream has not said. */
  retry: number | undefined;
}

/** The text as it comes, a part at a time. */
export async function* textParts(parts: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const part of parts) yield decoder.decode(part, { stream: true });
}

/**
 * The events of a stream (HTML, section 9.2).
 *
 * @param tooLong the error for an event of more than `max` characters; one that arrives in a single part is not measured
 */
export async function* readEvents(
  parts: AsyncIterable<string>,
  max: number,
  tooLong: () => Error,
): AsyncGenerator<StreamEvent> {
  let rest = "";
  let endedInCr = false;
  let event: StreamEvent = { id: undefined, data: "", type: undefined, retry: undefined };
  let lines: string[] = [];
  let length = 0;
  for await (const part of parts) {
    // The second half of CRLF, whose first half has ended a line already.
    rest += endedInCr && part.startsWith("\n") ? part.slice(1) : part;
    endedInCr = part === "" ? endedInCr : part.endsWith("\r");
    // A long line is not searched again with each of its parts.
    const hasEnd = /[\r\n]/.test(part);
    const end = hasEnd ? Math.max(rest.lastIndexOf("\n"), rest.lastIndexOf("\r")) + 1 : 0;
    const complete = rest.slice(0, end);
    rest = rest.slice(end);
    for (const line of complete.split(/\r\n|\r|\n/).slice(0, -1)) {
      length += line.length;
      if (line !== "") {
        const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        if (field === "data") lines.push(value);
        else if (field === "id" && !value.includes("\0")) event = { ...event, id: value };
        else if (field === "event") event = { ...event, type: value };
        else if (field === "retry" && /^\d+$/.test(value)) event = { ...event, retry: Number(value) };
        continue;
      }
      yield { ...event, data: lines.join("\n") };
      event = { ...event, type: undefined };
      lines = [];
      length = 0;
    }
    if (length + rest.length > max) throw tooLong();
  }
}
