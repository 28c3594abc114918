import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { asana } from "./asana.js";
import { atlassian } from "./atlassian.js";
import { atlassianV1 } from "./atlassian-v1.js";
import { auth0 } from "./auth0.js";
import { betterAuth } from "./better-auth.js";
import { clickup } from "./clickup.js";
import { cloudflare } from "./cloudflare.js";
import { cloudflareLegacy } from "./cloudflare-legacy.js";
import { cognito } from "./cognito.js";
import { context7 } from "./context7.js";
import { entra } from "./entra.js";
import { entraOrganizations } from "./entra-organizations.js";
import { expo } from "./expo.js";
import { fastmcp } from "./fastmcp.js";
import { figma } from "./figma.js";
import { github } from "./github.js";
import { gitlab } from "./gitlab.js";
import { glewlwyd } from "./glewlwyd.js";
import { googleWorkspace } from "./google-workspace.js";
import { higgsfield } from "./higgsfield.js";
import { hubspot } from "./hubspot.js";
import { indeed } from "./indeed.js";
import { jumpcloud } from "./jumpcloud.js";
import { keycloak } from "./keycloak.js";
import { kubernetesMcpServer } from "./kubernetes-mcp-server.js";
import { legacy } from "./legacy.js";
import { linear } from "./linear.js";
import { magnific } from "./magnific.js";
import { mcpHandler } from "./mcp-handler.js";
import { meta } from "./meta.js";
import { n8n } from "./n8n.js";
import { namecheap } from "./namecheap.js";
import { netsuite } from "./netsuite.js";
import { noIssuer } from "./no-issuer.js";
import { notion } from "./notion.js";
import { okta } from "./okta.js";
import { pipedream } from "./pipedream.js";
import { render } from "./render.js";
import { salesforce } from "./salesforce.js";
import { sentry } from "./sentry.js";
import type { ServerShape } from "./shape.js";
import { skyvern } from "./skyvern.js";
import { slack } from "./slack.js";
import { slackUserToken } from "./slack-user-token.js";
import { stripe } from "./stripe.js";
import { supabase } from "./supabase.js";
import { superset } from "./superset.js";
import { vercel } from "./vercel.js";
import { xiaohongshuMcp } from "./xiaohongshu-mcp.js";
import { zephyr } from "./zephyr.js";

/** The recorded shapes, by name. */
export const SERVER_SHAPES: readonly ServerShape[] = [
  asana,
  atlassian,
  atlassianV1,
  auth0,
  betterAuth,
  clickup,
  cloudflare,
  cloudflareLegacy,
  cognito,
  context7,
  entra,
  entraOrganizations,
  expo,
  fastmcp,
  figma,
  github,
  gitlab,
  glewlwyd,
  googleWorkspace,
  higgsfield,
  hubspot,
  indeed,
  jumpcloud,
  keycloak,
  kubernetesMcpServer,
  legacy,
  linear,
  magnific,
  mcpHandler,
  meta,
  n8n,
  namecheap,
  netsuite,
  noIssuer,
  notion,
  okta,
  pipedream,
  render,
  salesforce,
  sentry,
  skyvern,
  slack,
  slackUserToken,
  stripe,
  supabase,
  superset,
  vercel,
  xiaohongshuMcp,
  zephyr,
];

/** The shape with a name. @throws AgentAuthError `usage` */
export function findShape(id: string): ServerShape {
  const shape = SERVER_SHAPES.find((one) => one.id === id);
  if (shape) return shape;
  throw new AgentAuthError("usage", `sandbox: like must be the name of a recorded server, ${quote(id)} is not`, {
    class: "usage",
    hint: `give like as one of ${SERVER_SHAPES.map((one) => one.id).join(", ")}`,
  });
}
