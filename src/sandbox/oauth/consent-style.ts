/** The whole style of the sandbox's pages: the policy of the pages allows this text and no other, and no script. */
export const PAGE_STYLE = `
:root{color-scheme:light dark;--bg:#f4f5f8;--card:#fff;--ink:#171a21;--dim:#5b6472;--line:#d9dde5;--edge:#868f9f;--go:#2456d6;
--go-ink:#fff;--ring:#7aa2ff}
@media (prefers-color-scheme:dark){:root{--bg:#0f1218;--card:#181c25;--ink:#eceff5;--dim:#9aa4b5;--line:#2d3442;
--edge:#6b7488;--go:#6f9bff;--go-ink:#0b1020;--ring:#a9c4ff}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{width:100%;max-width:27rem;background:var(--card);border:1px solid var(--line);border-radius:16px;padding:2rem;
box-shadow:0 12px 40px rgb(0 0 0/.08)}
h1{margin:0 0 .5rem;font-size:1.35rem;line-height:1.25;overflow-wrap:anywhere}
p{margin:0 0 1rem;color:var(--dim);overflow-wrap:anywhere}
strong{color:var(--ink)}
dl{margin:1.25rem 0;border:1px solid var(--line);border-radius:12px}
dl>div{padding:.7rem 1rem}
dl>div+div{border-top:1px solid var(--line)}
dt{font-size:.8rem;color:var(--dim)}
dd{margin:0;overflow-wrap:anywhere}
ul{margin:.25rem 0 0;padding:0;list-style:none;display:flex;flex-wrap:wrap;gap:.4rem}
code{font:.875rem ui-monospace,SFMono-Regular,Menlo,monospace}
li code{padding:.15rem .5rem;border:1px solid var(--line);border-radius:999px}
form{display:grid;gap:.6rem}
form.two{grid-template-columns:1fr 1fr}
button,input{font:inherit;width:100%;padding:.7rem 1rem;border:1px solid var(--edge);border-radius:10px;
background:transparent;color:inherit}
button{cursor:pointer;font-weight:600;text-align:center}
button.user{text-align:left;font-weight:400}
button.user b{display:block}
button.user small{color:var(--dim)}
button.go{background:var(--go);border-color:var(--go);color:var(--go-ink)}
button:hover{border-color:var(--go)}
:focus-visible{outline:3px solid var(--ring);outline-offset:2px}
label{font-size:.875rem;color:var(--dim)}
footer{margin-top:1.5rem;font-size:.8rem;color:var(--dim)}
@media (max-width:24rem){main{padding:1.25rem}form.two{grid-template-columns:1fr}}
@media (prefers-reduced-motion:no-preference){button{transition:border-color .12s}}
`;
