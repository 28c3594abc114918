// Generated from src/sandbox/vendors/*.json by scripts/generate.mjs. Do not edit.

import agentNative from "./agent-native.json" with { type: "json" };
import asana from "./asana.json" with { type: "json" };
import atlassian from "./atlassian.json" with { type: "json" };
import atlassianV1 from "./atlassian-v1.json" with { type: "json" };
import auth0 from "./auth0.json" with { type: "json" };
import betterAuth from "./better-auth.json" with { type: "json" };
import clickup from "./clickup.json" with { type: "json" };
import cloudflare from "./cloudflare.json" with { type: "json" };
import cloudflareLegacy from "./cloudflare-legacy.json" with { type: "json" };
import cloudflareNoIss from "./cloudflare-no-iss.json" with { type: "json" };
import cognito from "./cognito.json" with { type: "json" };
import context7 from "./context7.json" with { type: "json" };
import entra from "./entra.json" with { type: "json" };
import entraAdminConsent from "./entra-admin-consent.json" with { type: "json" };
import entraOrganizations from "./entra-organizations.json" with { type: "json" };
import expo from "./expo.json" with { type: "json" };
import fastmcp from "./fastmcp.json" with { type: "json" };
import figma from "./figma.json" with { type: "json" };
import github from "./github.json" with { type: "json" };
import gitlab from "./gitlab.json" with { type: "json" };
import glewlwyd from "./glewlwyd.json" with { type: "json" };
import googleWorkspace from "./google-workspace.json" with { type: "json" };
import higgsfield from "./higgsfield.json" with { type: "json" };
import hubspot from "./hubspot.json" with { type: "json" };
import indeed from "./indeed.json" with { type: "json" };
import jumpcloud from "./jumpcloud.json" with { type: "json" };
import keycloak from "./keycloak.json" with { type: "json" };
import kubernetesMcpServer from "./kubernetes-mcp-server.json" with { type: "json" };
import legacy from "./legacy.json" with { type: "json" };
import linear from "./linear.json" with { type: "json" };
import magnific from "./magnific.json" with { type: "json" };
import mcpHandler from "./mcp-handler.json" with { type: "json" };
import meta from "./meta.json" with { type: "json" };
import n8n from "./n8n.json" with { type: "json" };
import namecheap from "./namecheap.json" with { type: "json" };
import netsuite from "./netsuite.json" with { type: "json" };
import noIssuer from "./no-issuer.json" with { type: "json" };
import notion from "./notion.json" with { type: "json" };
import okta from "./okta.json" with { type: "json" };
import pipedream from "./pipedream.json" with { type: "json" };
import render from "./render.json" with { type: "json" };
import salesforce from "./salesforce.json" with { type: "json" };
import sentry from "./sentry.json" with { type: "json" };
import skyvern from "./skyvern.json" with { type: "json" };
import slack from "./slack.json" with { type: "json" };
import slackUserToken from "./slack-user-token.json" with { type: "json" };
import stripe from "./stripe.json" with { type: "json" };
import supabase from "./supabase.json" with { type: "json" };
import superset from "./superset.json" with { type: "json" };
import twenty from "./twenty.json" with { type: "json" };
import vercel from "./vercel.json" with { type: "json" };
import xiaohongshuMcp from "./xiaohongshu-mcp.json" with { type: "json" };
import zephyr from "./zephyr.json" with { type: "json" };
import type { ServerShape } from "./shape.js";

export const SERVER_SHAPES = [
  agentNative,
  asana,
  atlassian,
  atlassianV1,
  auth0,
  betterAuth,
  clickup,
  cloudflare,
  cloudflareLegacy,
  cloudflareNoIss,
  cognito,
  context7,
  entra,
  entraAdminConsent,
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
  twenty,
  vercel,
  xiaohongshuMcp,
  zephyr,
] as readonly ServerShape[];
