// What both sides of the first-token workload do alike.

/** Where nobody listens: the callback is read from the redirect. */
export const REDIRECT_URI = "http://127.0.0.1:49152/callback";

/** A request that an MCP server answers without a session. */
export const TOOLS_LIST = {
  method: "POST",
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
};

/** Signs in where the sandbox asks nobody, and gives the parameters of the callback. */
export async function callback(url) {
  const response = await fetch(url, { redirect: "manual" });
  await response.text();
  return new URL(response.headers.get("location") ?? "").searchParams;
}
