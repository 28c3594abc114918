import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { ServerShape } from "./shape.js";
import { asana } from "./vendors/asana.js";
import { atlassian } from "./vendors/atlassian.js";
import { atlassianV1 } from "./vendors/atlassian-v1.js";
import { auth0 } from "./vendors/auth0.js";
import { betterAuth } from "./vendors/better-auth.js";
import { clickup } from "./vendors/clickup.js";
import { cloudflare } from "./vendors/cloudflare.js";
import { cloudflareLegacy } from "./vendors/cloudflare-legacy.js";
import { cognito } from "./vendors/cognito.js";
import { context7 } from "./vendors/context7.js";
import { entra } from "./vendors/entra.js";
import { entraOrganizations } from "./vendors/entra-organizations.js";
import { expo } from "./vendors/expo.js";
import { fastmcp } from "./vendors/fastmcp.js";
import { figma } from "./vendors/figma.js";
import { github } from "./vendors/github.js";
import { gitlab } from "./vendors/gitlab.js";
import { glewlwyd } from "./vendors/glewlwyd.js";
import { googleWorkspace } from "./vendors/google-workspace.js";
import { higgsfield } from "./vendors/higgsfield.js";
import { hubspot } from "./vendors/hubspot.js";
import { indeed } from "./vendors/indeed.js";
import { jumpcloud } from "./vendors/jumpcloud.js";
import { keycloak } from "./vendors/keycloak.js";
import { kubernetesMcpServer } from "./vendors/kubernetes-mcp-server.js";
import { legacy } from "./vendors/legacy.js";
import { linear } from "./vendors/linear.js";
import { magnific } from "./vendors/magnific.js";
import { mcpHandler } from "./vendors/mcp-handler.js";
import { meta } from "./vendors/meta.js";
import { n8n } from "./vendors/n8n.js";
import { namecheap } from "./vendors/namecheap.js";
import { netsuite } from "./vendors/netsuite.js";
import { noIssuer } from "./vendors/no-issuer.js";
import { notion } from "./vendors/notion.js";
import { okta } from "./vendors/okta.js";
import { pipedream } from "./vendors/pipedream.js";
import { render } from "./vendors/render.js";
import { salesforce } from "./vendors/salesforce.js";
import { sentry } from "./vendors/sentry.js";
import { skyvern } from "./vendors/skyvern.js";
import { slack } from "./vendors/slack.js";
import { slackUserToken } from "./vendors/slack-user-token.js";
import { stripe } from "./vendors/stripe.js";
import { supabase } from "./vendors/supabase.js";
import { superset } from "./vendors/superset.js";
import { vercel } from "./vendors/vercel.js";
import { xiaohongshuMcp } from "./vendors/xiaohongshu-mcp.js";
import { zephyr } from "./vendors/zephyr.js";

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
