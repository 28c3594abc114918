import { expect, it } from "vitest";
import { HttpHeaders, HttpRequest, HttpResponse } from "../../src/http/http-message.js";

type WithBytes<Message> = Message & { bytes(): Promise<Uint8Array> };

/** The classes of the Fetch Standard, for arguments that their types do not allow too. */
export interface FetchClasses {
  Headers: new (init?: unknown) => Headers;
  Request: new (input?: unknown, init?: unknown) => WithBytes<Request>;
  Response: {
    new (body?: unknown, init?: unknown): WithBytes<Response>;
    error(): Response;
    json(data?: unknown, init?: unknown): Response;
    redirect(url?: unknown, status?: unknown): Response;
  };
  FormData: new (form?: unknown) => FormData;
}

const OURS = { Headers: HttpHeaders, Request: HttpRequest, Response: HttpResponse, FormData };
const OF_NODE = { Headers, Request, Response, FormData };

/** What the standard says of the classes: a sentence, how to see it, and what is seen; an error by its class. */
export type StandardCase = readonly [
  name: string,
  run: (classes: FetchClasses) => unknown,
  expected: unknown,
  /** The major versions of Node whose own classes do otherwise. */
  differing?: readonly number[],
];

const [major = 0] = process.versions.node.split(".").map(Number);

/** Runs a table with our classes, and with those of Node, which shows that the table is right. */
export function testStandard(cases: readonly StandardCase[]): void {
  for (const [name, run, expected, differing] of cases) {
    it(name, async () => expect(await outcome(() => run(OURS as unknown as FetchClasses))).toEqual(expected));
    if (differing?.includes(major)) continue;
    it(`${name}, in Node's own classes`, async () =>
      expect(await outcome(() => run(OF_NODE as unknown as FetchClasses))).toEqual(expected));
  }
}

/** What a function returns, or the class of what it throws if that says why. */
async function outcome(run: () => unknown): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    const isOfStandard = error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
    return isOfStandard && error.message !== "" ? error.constructor : error;
  }
}

/** Whether a function throws a `TypeError`, now or later. */
export async function isRefused(run: () => unknown): Promise<boolean> {
  return (await outcome(run)) === TypeError;
}

/** The parts as a stream. */
export function streamOf(...parts: unknown[]): ReadableStream {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

export function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

export function decode(bytes: ArrayBuffer | Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
