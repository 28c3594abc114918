/** The titles of problems, by their status: what they say is the same for every user. */
const TITLES = {
  400: "The request failed.",
  401: "Log in to this application first.",
  403: "Send the request from this site.",
  404: "There is nothing here for you.",
  405: "The method is not allowed.",
  409: "Connect the server first.",
  413: "The body is too large.",
  415: "The body has another type.",
  429: "Too many requests.",
  500: "The application failed.",
  503: "The issuer or the store is unavailable.",
} as const;

type ProblemStatus = keyof typeof TITLES;

/** No page of another site may read or embed a response, and no cache may keep it. */
const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** A problem (RFC 9457) with a code of ours, and no text of a server. */
export function respondProblem(status: number, code: string, headers: Record<string, string> = {}): Response {
  const known = status in TITLES ? (status as ProblemStatus) : 500;
  const type = { "content-type": "application/problem+json" };
  const problem = { title: TITLES[known], status: known, code };
  return new Response(JSON.stringify(problem), { status: known, headers: { ...HEADERS, ...type, ...headers } });
}

export function respondJson(value: object, cookies: readonly string[] = []): Response {
  return withCookies(cookies, JSON.stringify(value), { ...HEADERS, "content-type": "application/json" }, 200);
}

/** Sends the browser on with GET. */
export function respondSeeOther(location: string, cookies: readonly string[] = []): Response {
  return withCookies(cookies, null, { ...HEADERS, location }, 303);
}

function withCookies(
  cookies: readonly string[],
  body: string | null,
  given: Record<string, string>,
  status: number,
): Response {
  const headers = new Headers(given);
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(body, { status, headers });
}
