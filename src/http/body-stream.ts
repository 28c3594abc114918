type Bytes = Uint8Array<ArrayBuffer>;

/** The body of a request or a response as a stream. */
export type ByteStream = ReadableStream<Bytes>;

/** On Node a stream says whether it was read or cancelled; there is no standard interface for it. */
const DISTURBED = Symbol.for("nodejs.stream.disturbed");

/** Whether a body is given as a stream. */
export function isStream(source: unknown): source is ByteStream {
  return Object.prototype.toString.call(source) === "[object ReadableStream]";
}

/** Whether a stream was read or cancelled, as far as the runtime says. */
export function isDisturbed(stream: ByteStream | undefined): boolean {
  return (stream as { [DISTURBED]?: boolean } | undefined)?.[DISTURBED] === true;
}

/** @throws `TypeError` for a part of a body that is none of bytes */
export function checkPart(part: unknown): Bytes {
  if (!(part instanceof Uint8Array)) throw new TypeError("a part of the body is not a Uint8Array");
  return part as Bytes;
}

/** Calls `take` with each part of a stream, to its end or until `take` throws; the stream stays locked. */
export async function readStream(stream: ByteStream, take: (part: Bytes) => void): Promise<void> {
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) take(checkPart(part.value));
  } catch (thrown) {
    await reader.cancel().catch(() => undefined);
    throw thrown;
  }
}

/** Makes a stream one that was read. */
export function markRead(stream: ByteStream): void {
  void stream.getReader().cancel();
}

/** The parts as a stream, which asks for one when it is read. */
export function streamOf(parts: AsyncGenerator<Bytes, undefined>, cancel: () => Promise<void>): ByteStream {
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      try {
        // A stream of bytes takes no empty part.
        let part = await parts.next();
        while (!part.done && part.value.byteLength === 0) part = await parts.next();
        // A copy: the stream detaches the buffer, which may be the pool of all others.
        if (!part.done) return controller.enqueue(new Uint8Array(part.value));
        controller.close();
        controller.byobRequest?.respond(0);
      } catch (error) {
        controller.error(error);
      }
    },
    cancel,
  }) as ByteStream;
}
