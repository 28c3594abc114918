// openai's pager over the same devices, in its own envelope.
import OpenAI from "openai";
import { side, TOKEN } from "../lib/side.mjs";

await side(async ({ url, pageSize }, take) => {
  const client = new OpenAI({ baseURL: url, apiKey: TOKEN });
  for await (const item of client.files.list({ limit: pageSize })) take(item);
});
