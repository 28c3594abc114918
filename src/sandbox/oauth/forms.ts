/** A form with hidden fields only, as oidc-provider renders it. */
export interface HiddenForm {
  action: string;
  fields: Record<string, string>;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** Reads the hidden fields of the first form in a page of oidc-provider; `undefined` where there is no form. */
export function readHiddenForm(html: string): HiddenForm | undefined {
  const action = /<form [^>]*action="([^"]*)"/.exec(html)?.[1];
  if (action === undefined) return undefined;
  const inputs = html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g);
  return {
    action: unescapeHtml(action),
    fields: Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, unescapeHtml(value)])),
  };
}

function unescapeHtml(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}
