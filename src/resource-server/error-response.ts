/** A response to send, independent of the server. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

/** A response with a JSON body. */
export function jsonAnswer(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return { status, headers: { ...HEADERS, ...headers }, body: JSON.stringify(body) };
}

/** The response as fetch-style handlers return it. */
export function responseOf({ status, headers, body }: Answer): Response {
  return new Response(status === 204 ? null : body, { status, headers });
}
