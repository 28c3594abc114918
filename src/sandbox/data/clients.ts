import type { SessionType } from "../types.js";

/** A piece of software as the service sees it. */
export interface ClientProfile {
  /** What it calls itself when it registers. */
  title: string;
  ja4: string;
  /** Its User-Agent strings, older first. */
  agents: readonly string[];
}

const MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/";
const WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/";
const chrome = (start: string, version: number) =>
  `${start}537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Safari/537.36`;
const firefox = (system: string, version: number) =>
  `Mozilla/5.0 (${system}; rv:${version}.0) Gecko/20100101 Firefox/${version}.0`;
const safari = (start: string, version: string, tail: string) =>
  `${start}605.1.15 (KHTML, like Gecko) Version/${version} ${tail}`;
const IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/";
const ANDROID = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/";

/** The software that is found on devices, by session type. */
export const CLIENTS: Readonly<Record<SessionType, readonly ClientProfile[]>> = {
  browser: [
    { title: "Web console", ja4: "t13d1516h2_8daaf6152771_02713d6af862", agents: [chrome(MAC, 137), chrome(MAC, 138)] },
    {
      title: "Web console",
      ja4: "t13d1516h2_8daaf6152771_e5627efa2ab1",
      agents: [chrome(WINDOWS, 136), chrome(WINDOWS, 138)],
    },
    {
      title: "Admin portal",
      ja4: "t13d1516h2_8daaf6152771_d8a2da3f94cd",
      agents: [`${chrome(WINDOWS, 137)} Edg/137.0.0.0`],
    },
    {
      title: "Web console",
      ja4: "t13d1717h2_5b57614c22b0_3d5424432f57",
      agents: [firefox("X11; Linux x86_64", 139), firefox("X11; Linux x86_64", 140)],
    },
    {
      title: "Web console",
      ja4: "t13d1715h2_5b57614c22b0_7121afd63204",
      agents: [firefox("Windows NT 10.0; Win64; x64", 140)],
    },
    {
      title: "Web console",
      ja4: "t13d2014h2_a09f3c656075_14788d8d241b",
      agents: [safari(MAC, "18.4", "Safari/605.1.15"), safari(MAC, "18.5", "Safari/605.1.15")],
    },
    {
      title: "Mobile sign-in",
      ja4: "t13d2014h2_a09f3c656075_e42f34c56612",
      agents: [safari(IPHONE, "18.5", "Mobile/15E148 Safari/604.1")],
    },
    {
      title: "Mobile sign-in",
      ja4: "t13d1517h2_8daaf6152771_b1ff8ab2d16f",
      agents: [`${ANDROID}137.0.0.0 Mobile Safari/537.36`],
    },
  ],
  api: [
    { title: "Shell script", ja4: "t13d3112h2_e8f1e7e78f70_b26ce05bbdd6", agents: ["curl/8.5.0", "curl/8.14.1"] },
    {
      title: "Billing sync",
      ja4: "t13d1811h1_85036bcba153_375ca2c5e164",
      agents: ["python-requests/2.31.0", "python-requests/2.32.4"],
    },
    { title: "Data pipeline", ja4: "t13d4312h1_c7886603b240_b26ce05bbdd6", agents: ["python-httpx/0.28.1"] },
    { title: "Deploy service", ja4: "t13d521000_b262b3658495_8e6e362c5eac", agents: ["node"] },
    { title: "Webhook relay", ja4: "t13d1311h2_f57a46bbacb6_e7c285222651", agents: ["Go-http-client/2.0"] },
    { title: "Desktop client", ja4: "t13d1613h2_46e7e9700bed_45f260be83e2", agents: ["okhttp/4.12.0", "okhttp/5.0.0"] },
  ],
  mcp: [
    {
      title: "Claude Code",
      ja4: "t13d5911h1_a33745022dd6_1f22a2ca17c4",
      agents: ["claude-code/1.0.51", "claude-code/1.0.64"],
    },
    {
      title: "Cursor",
      ja4: "t13d1714h1_5b57614c22b0_eca864cca44a",
      agents: ["Cursor/1.2.1 (darwin arm64)", "Cursor/1.3.0 (darwin arm64)"],
    },
    {
      title: "Visual Studio Code",
      ja4: "t13d1715h1_5b57614c22b0_06cda9e17597",
      agents: ["Visual Studio Code/1.102.1"],
    },
    { title: "MCP Inspector", ja4: "t13d521100_b262b3658495_f5a9a0b5c4b2", agents: ["mcp-inspector/0.16.1"] },
    {
      title: "Research agent",
      ja4: "t13d1812h1_85036bcba153_b26ce05bbdd6",
      agents: ["python-httpx/0.27.2 mcp/1.11.0", "python-httpx/0.28.1 mcp/1.12.2"],
    },
    { title: "エージェント", ja4: "t13d1311h1_f57a46bbacb6_ab7e3b40a677", agents: ["mcp-go/0.34.0"] },
  ],
};

/** The addresses that a client asks to be sent back to, as JSON text; `port` and `draw` vary by device. */
export function redirectUris(session: SessionType, port: number, draw: number): string {
  const way = draw % 8;
  if (session === "browser" || way === 0) return `["https://agents.example.com/${session}/callback"]`;
  if (way === 1) return `["http://127.0.0.1:${port}/callback","http://localhost:${port}/callback"]`;
  if (way === 2) return `["http://localhost:${port}/oauth/callback"]`;
  return `["http://127.0.0.1:${port}/callback"]`;
}
