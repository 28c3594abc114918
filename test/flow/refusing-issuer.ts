import { startIssuer, startMcp } from "../helpers/issuer.js";

/** An MCP server whose issuer lists the scope `offline_access` and then refuses it. */
export async function startRefusingIssuer() {
  const issuer = await startIssuer("as");
  issuer.metadata["scopes_supported"] = ["offline_access"];
  issuer.routes["/pool/authorize"] = (request, nth) => {
    const scope = new URL(request.url, issuer.origin).searchParams.get("scope") ?? "";
    issuer.callback = scope.includes("offline_access") ? { error: "invalid_scope", code: null } : {};
    return { status: 302, headers: { location: issuer.callbackTo(request, nth) } };
  };
  const mcp = await startMcp("mcp", [], issuer);
  mcp.metadata["scopes_supported"] = ["tools"];
  return { issuer, mcp };
}
