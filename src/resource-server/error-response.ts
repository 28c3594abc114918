/** What is to be sent back, whatever sends it. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

/** An answer with a JSON body. */
export function jsonAnswer(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return { status, headers: { ...HEADERS, ...headers }, body: JSON.stringify(body) };
}

/** The answer as fetch-style handlers give it. */
export function responseOf({ status, headers, body }: Answer): Response {
  return new Response(status === 204 ? null : body, { status, headers });
}
